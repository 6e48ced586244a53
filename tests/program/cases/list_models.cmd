$ orrery list models
stdout gpt3-175b
no-stderr .
