"""The commands check, lab views and lab translate, as a user runs them."""

import json
import zipfile

import pytest

pytestmark = pytest.mark.usefixtures("embedded_encoder")


def test_check_says_what_the_file_holds(sentloom, faq, tmp_path):
    done = sentloom("check", faq, "--json", tmp_path / "found.json")
    assert done.returncode == 0, done.stderr
    assert "pairs, 3 rows (question, answer)" in done.stdout
    assert "unused columns: team" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["shape"], found["rows"], found["duplicate_rows"]) == ("pairs", 3, 1)
    assert found["lengths"][0]["unit"] == "tokens"
    # [CLS] how do i reset my password ? [SEP]
    assert found["lengths"][0]["distribution"]["most"] == 9


def test_check_finds_leaks_and_says_so_by_its_exit_code(sentloom, faq, tmp_path):
    (tmp_path / "eval.tsv").write_text("sentence1\tsentence2\tscore\nwhere is THE canteen\tIt rains.\t1.0\n")
    done = sentloom("check", faq, "--against", tmp_path / "eval.tsv")
    assert done.returncode == 1, done.stderr
    assert "1 of 2 evaluation sentences" in done.stdout
    assert "eval.tsv, line 2" in done.stdout
    assert "faq.csv, line 3" in done.stdout


def test_check_repairs_a_copy_and_reports_on_the_copy(sentloom, faq, tmp_path):
    before, fixed, findings = faq.read_bytes(), tmp_path / "fixed.tsv", tmp_path / "found.json"
    done = sentloom("check", faq, "-o", fixed, "--json", findings)
    assert done.returncode == 0, done.stderr
    assert fixed.read_text().splitlines() == [
        "question\tanswer\tteam",
        "How do I reset my password?\tOpen the settings and choose a new one.\tit",
        "Where is the canteen?\tOn the ground floor.\toffice",
    ]
    assert faq.read_bytes() == before
    shown = [done.stdout.index(text) for text in ("3 rows, 2 kept", f"written: {fixed}", "Findings")]
    assert shown == sorted(shown)  # first what was repaired, then what the copy holds
    found = json.loads(findings.read_text())
    assert (found["rows"], found["duplicate_rows"]) == (2, 0)
    again = sentloom("check", fixed, "--json", findings)
    assert again.returncode == 0, again.stderr
    assert json.loads(findings.read_text())["duplicate_rows"] == 0


def test_leaks_are_looked_for_in_the_copy(sentloom, faq, tmp_path):
    (tmp_path / "eval.tsv").write_text("sentence1\tsentence2\tscore\nWhere is the canteen?\tIt rains.\t1.0\n")
    command = ("check", faq, "--against", tmp_path / "eval.tsv", "-o", tmp_path / "fixed.csv")
    assert sentloom(*command).returncode == 1
    done = sentloom(*command, "--min-words", "5", "--json", tmp_path / "found.json")  # the canteen's row has four
    assert done.returncode == 0, done.stdout + done.stderr
    assert "password" in (tmp_path / "fixed.csv").read_text()
    assert "canteen" not in (tmp_path / "fixed.csv").read_text()
    assert json.loads((tmp_path / "found.json").read_text())["rows"] == 1


def test_a_file_that_fails_the_check_is_repaired_unless_most_of_it_is_unusable(sentloom, tmp_path):
    (tmp_path / "some.csv").write_text("sentence1,sentence2,score\na,b,1\nc,d,x\ne,f,2\n")
    (tmp_path / "most.csv").write_text("sentence1,sentence2,score\n" + "a,b,1\n" * 10 + "c,d,x\n" * 11)
    assert sentloom("check", tmp_path / "some.csv").returncode == 2
    done = sentloom("check", tmp_path / "some.csv", "-o", tmp_path / "fixed.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fixed.csv").read_text().splitlines() == ["sentence1,sentence2,score", "a,b,1.0", "e,f,2.0"]
    done = sentloom("check", tmp_path / "most.csv", "-o", tmp_path / "other.csv")
    assert done.returncode == 2
    assert "most.csv, line 12" in done.stderr
    assert not (tmp_path / "other.csv").exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--min-words", "2"), "--min-words"),
        (("--near-duplicates", "0.8", "--distinct", "answer"), "--distinct and --near-duplicates"),
        (("--spreadsheet-safe",), "--spreadsheet-safe"),
    ],
)
def test_options_of_a_repair_need_a_file_to_write(sentloom, faq, tmp_path, options, named):
    before = sorted(tmp_path.iterdir())
    done = sentloom("check", faq, *options, "--json", tmp_path / "found.json")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {named}: without a file to write, nothing is repaired or dropped.")
    assert "Add -o FIXED, or leave it out." in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_bad_data_is_named_by_file_and_line_with_exit_code_2(sentloom, tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"sentence1,sentence2,score\na,b,1\nc,d,x\ne,f\n")
    done = sentloom("encode", tmp_path / "bad.csv", "-o", tmp_path / "v.npy")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "bad.csv, line 3" in done.stderr
    assert "bad.csv, line 4" in done.stderr
    assert not (tmp_path / "v.npy").exists()


def test_views_shows_originals_and_views_side_by_side_and_resumes(sentloom, faq, tmp_path, monkeypatch):
    from tests.writing.views.small_parts import build_wordnet

    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    build_wordnet(tmp_path / "nltk/corpora/wordnet")
    (tmp_path / "texts.txt").write_text("The box.\nNothing here.\nThe box.\n")
    done = sentloom(
        "lab", "views", tmp_path / "texts.txt", "--kind", "synonyms", "--share", "1", "-o", tmp_path / "v.tsv"
    )
    assert done.returncode == 0, done.stderr
    assert "original" in done.stdout
    assert any("The box." in line and "The case." in line for line in done.stdout.splitlines())
    assert "1 views equal to the original (kept)" in done.stdout
    written = (tmp_path / "v.tsv").read_text()
    assert written == "anchor\tpositive\nThe box.\tThe case.\nNothing here.\tNothing here.\n"
    assert list((tmp_path / ".sentloom/views").glob("*/*.arrow"))
    done = sentloom(
        "lab", "views", tmp_path / "texts.txt", "--kind", "file", "--file", tmp_path / "v.tsv", "-o", tmp_path / "w.tsv"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w.tsv").read_text() == written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kind", "rhymes"], "one of back-translation, synonyms, mask-fill, file, entailment"),
        (["--kind", "synonyms", "--beams", "3"], "unknown name 'beams'"),
        (["--kind", "mask-fill"], "model is missing"),
        (["--kind", "mask-fill", "--model", "embedded"], "cannot fill masks"),
        (["--kind", "mask-fill", "--model", "nowhere"], "no such folder"),
        (["--kind", "entailment"], "the shape nli"),
        (["--kind", "file", "--file", "texts.txt"], "texts.txt: the file contains texts"),
        (["--pivot", "one"], "forward,backward"),
        (["--pivot", "nowhere,nowhere"], "no such folder"),
    ],
)
def test_mistakes_with_views(sentloom, tmp_path, monkeypatch, arguments, said):
    (tmp_path / "texts.txt").write_text("One line.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = sentloom("lab", "views", "texts.txt", "-o", "views.tsv", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "views.tsv").exists()


def test_views_that_are_stopped_say_how_to_resume(sentloom, tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sentloom.writing.views.pairs.make_missing", stop)
    monkeypatch.setattr(
        "sentloom.writing.views.pairs.makers_for", lambda settings: [type("Maker", (), {"identity": "none"})]
    )
    (tmp_path / "texts.txt").write_text("One line.\n")
    done = sentloom("lab", "views", tmp_path / "texts.txt", "-o", tmp_path / "views.tsv")
    assert done.returncode != 0
    assert "Run the same command again to resume" in done.stdout


@pytest.mark.long
def test_twin_files_are_checked_cleaned_and_teach_a_vocabulary(sentloom, twins, tmp_path):
    done = sentloom("check", twins)
    assert done.returncode == 0, done.stderr
    assert "15 rows (source, target)" in done.stdout
    assert "3 lines that are blank on one side" in done.stdout
    assert "tokens per word" in done.stdout
    assert "sentloom lab vocabulary" in done.stdout
    options = ["--length-ratio", "3", "--scripts", "Latin,Latin", "--distinct", "target"]
    done = sentloom("check", twins, "-o", tmp_path / "clean.tsv", *options)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "clean.tsv").read_text().splitlines() == [
        "source\ttarget",
        "The doctor recommends early screening.\tDer Arzt empfiehlt die Vorsorgeuntersuchung.",
        "same\tx",
    ]
    done = sentloom("lab", "vocabulary", "embedded", twins, "-o", tmp_path / "student", "--size", "100")
    assert done.returncode == 2
    assert "no token" in done.stderr  # three times is too rare to be learned
    (tmp_path / "more.txt").write_text("Der Arzt empfiehlt die Vorsorgeuntersuchung.\n" * 9)
    done = sentloom("lab", "vocabulary", "embedded", tmp_path / "more.txt", "-o", tmp_path / "student", "--size", "100")
    assert done.returncode == 0, done.stderr
    assert "before, 1.00 tokens per word after; 0.0% of the sentences keep their tokens" in done.stdout
    assert sentloom("check", twins, "--model", tmp_path / "student").returncode == 0


def test_a_zip_file_of_twins_is_checked_and_it_says_which_is_the_source(sentloom, twins, tmp_path):
    with zipfile.ZipFile(tmp_path / "opus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "c.de", "c.en-de.de")
        archive.write(tmp_path / "c.en", "c.en-de.en")
        archive.writestr("README", "Twins")
    done = sentloom("check", tmp_path / "opus.zip")
    assert done.returncode == 0, done.stderr
    assert "opus.zip/c.en-de.en+c.en-de.de: parallel, 15 rows (source, target)" in done.stdout


@pytest.mark.parametrize("verb", ["translate", "views"])
def test_a_wrong_ending_is_refused_before_the_work(verb, sentloom, tmp_path):
    (tmp_path / "texts.txt").write_text("A dog runs.\n")
    done = sentloom("lab", verb, tmp_path / "texts.txt", "-o", tmp_path / "pairs.txt")
    assert done.returncode == 2
    assert "the extension .csv" in done.stderr
    assert [path.name for path in tmp_path.glob("*") if path.name != "scratch"] == ["texts.txt"]  # no view was made
