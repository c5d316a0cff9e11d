"""Documents: folders of text, Markdown, HTML, PDF and DOCX files become rows of passages.

`folder` decides which files are read; `parsers` turns the bytes of one into a `Document` (`html`, `pdf`, `plain`: a
format each); `passages` divides it at its headings and paragraphs. All of this happens in child processes (`workers`
starts them, `child` is their program), so that a hostile file costs that file only. `source` makes rows of the answers,
and `structure` makes pairs of titles, headings and links and the passages that they belong to.
"""
