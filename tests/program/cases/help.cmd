$ orrery -h
stdout simulate
stdout compare
stdout explain
stdout list
no-stderr .
