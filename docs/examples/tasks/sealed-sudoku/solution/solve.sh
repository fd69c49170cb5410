#!/bin/bash
python3 /solution/sudoku.py < /app/puzzles.txt > /app/answers.txt
