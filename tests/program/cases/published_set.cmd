# What was published is predicted as it was run.
$ ! orrery validate --published published.json --set strategy.tensor=4
stderr --set: published steps are predicted as they were run; leave it out, or give a SPEC
no-stdout .
