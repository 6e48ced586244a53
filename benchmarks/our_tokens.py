#!/usr/bin/env python3
"""The tokens that our executor trains on, for programs that are held against it (exec/host/text.h, rank_program.cpp).

  our_tokens.py SAMPLE SEQUENCE VOCABULARY   prints the tokens of a sample, and the one behind them
"""
import os
import sys

TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../exec/program/data/text.txt")


def sample(number, sequence, vocabulary):
    """sequence + 1 tokens, each a byte of the text: those of a sample, and shifted by one its labels."""
    with open(TEXT, "rb") as file:
        text = built_in = file.read()
    while len(text) <= sequence + 1:
        text += built_in
    first = number * sequence % (len(text) - sequence)
    return [text[(first + i) % len(text)] % vocabulary for i in range(sequence + 1)]


if __name__ == "__main__":
    print(*sample(*map(int, sys.argv[1:4])))
