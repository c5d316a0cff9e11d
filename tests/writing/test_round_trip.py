"""Ranks by hand, and queries that find their source with a real encoder."""

import numpy as np

from sentloom.encoder import Encoder
from sentloom.writing.judges import RoundTrip, fused_rank, rank_in

TEXTS = [
    "To reset your password, open the settings and choose Security.",
    "The canteen is on the ground floor and opens at noon.",
    "Refunds are paid within ten days.",
    "The canteen is on the ground floor and opens at noon.",
    "Our offices are closed on public holidays.",
]


def test_ranks_in_a_list_by_hand():
    results = np.array([[4, 2, 7], [4, 2, 7], [-1, -1, -1]])
    assert rank_in(results, np.array([2, 9, 0])).tolist() == [2, 0, 0]


def test_fused_ranks_by_hand():
    words, vectors = np.array([[0, 1, 2]]), np.array([[1, 3, 0]])
    # 1: 1/62 + 1/61; 0: 1/61 + 1/63; 3: 1/62; 2: 1/63
    for text, rank in ((1, 1), (0, 2), (3, 3), (2, 4), (8, 0)):
        assert fused_rank([words, vectors], np.array([text])).tolist() == [rank]
    assert fused_rank([np.array([[5, 6]]), np.array([[6, 5]])], np.array([5])).tolist() == [
        2
    ]  # a tie counts against it
    assert fused_rank([np.array([[-1, -1]])], np.array([0])).tolist() == [0]


def test_queries_find_their_source_among_all_texts():
    judge = RoundTrip(TEXTS, Encoder.load("embedded"))
    queries = ["forgot my login", "Where can I eat lunch?", "settings Security", ""]
    ranks = judge.find(queries, [TEXTS[0], TEXTS[3], TEXTS[0], TEXTS[1]])
    assert ranks.encoder[:2].tolist() == [1, 1]
    assert ranks.bm25.tolist() == [0, 0, 1, 0]  # the first two share no word with their source
    assert ranks.fused[:3].tolist() == [1, 1, 1]
    assert ranks.fused[3] > 1


def test_without_an_encoder_words_decide():
    ranks = RoundTrip(TEXTS, None).find(["public holidays", "the refunds", "lunch"], [TEXTS[4], TEXTS[1], TEXTS[1]])
    assert ranks.fused.tolist() == ranks.bm25.tolist()
    assert ranks.fused[0] == 1
    assert ranks.fused[1] > 1
    assert ranks.fused[2] == 0
    assert ranks.encoder.tolist() == [0, 0, 0]


def test_nothing_to_find():
    ranks = RoundTrip(TEXTS, None).find([], [])
    assert [len(of_search) for of_search in ranks] == [0, 0, 0]
