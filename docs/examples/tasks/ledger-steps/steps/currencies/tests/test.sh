#!/bin/bash
# Three rewards; "reward" is the score of the step, and what the first step asked for is a part of it.
python3 -I /tests/check_currencies.py > /logs/verifier/reward.json
