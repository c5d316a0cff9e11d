"""What inputs and evaluation sets have in common, and that sets are independent of each other."""

from sentloom.evaluation.task import Task
from sentloom.fitting.evaluation_sets import read_against, shared_sentences
from sentloom.fitting.inputs import InputSource, look
from tests.fitting.test_inputs import pairs, sentence
from tests.fitting.test_request import request


def test_what_inputs_and_evaluation_sets_have_in_common(tmp_path, monkeypatch):
    def write(name, *lines):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return name

    monkeypatch.chdir(tmp_path)
    texts = write("texts.txt", *(sentence(number) for number in range(200)))
    faq = write("faq.tsv", "question\tanswer", *pairs(100, start=150))  # 50 questions are among the texts
    scored = [*(sentence(number).upper() for number in range(240, 260)), "Nothing of it."]
    test = Task("test.txt", "accuracy", {"symmetric": scored}, lambda lookup: {}, "written here")
    inputs = look([InputSource(texts), InputSource(faq)])
    assert shared_sentences(inputs, [test]) == [
        "texts.txt and faq.tsv have 50 sentences in common (25.0% of texts.txt)",
        "10 of the 21 sentences of test.txt (written here) appear in faq.tsv",
    ]
    assert shared_sentences(inputs[:1], [test]) == []


def test_sets_that_decide_have_clusters_of_their_own(tmp_path):
    """Equal numbers are one cluster, also in different sets."""
    for name in ("one", "two"):
        rows = [f"{name} question {7919**2 * n}\t{name} answer {104729**2 * n}" for n in range(1, 31)]
        (tmp_path / f"{name}.tsv").write_text("question\tanswer\n" + "\n".join(rows) + "\n")
    files = tuple(str(tmp_path / f"{name}.tsv") for name in ("one", "two"))
    tasks = read_against(request(data=files, output=tmp_path / "model", against=files), ("one more",), print)
    assert [len(task.texts["document"]) for task in tasks] == [31, 31]
    numbers = [set(task.searched.clusters.tolist()) for task in tasks]
    assert not numbers[0] & numbers[1]
