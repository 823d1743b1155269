"""An index's pages are read as pip reads them, and passed on with nothing of where they came from."""

from orchestrator.engines.index.simple_api import Link, links, make_index_page

AT = "https://user@index.example/root/simple/six/"
PAGE = """<!DOCTYPE html><html><head><title>Links for six</title></head><body>
<a href="../../files/six-1.17.0-py2.py3-none-any.whl#sha256=4721" data-requires-python="&gt;=2.7, !=3.0.*"
   data-dist-info-metadata="sha256=1" data-gpg-sig="true">six-1.17.0-py2.py3-none-any.whl</a>
<a href="https://files.example/aa/six%2B-1.16.0.tar.gz?token=secret#md5=1" data-yanked>six-1.16.0.tar.gz</a>
<a href="mailto:somebody@index.example">ask</a><a name="top">no link</a><a href="">empty</a>
</body></html>"""


def test_a_page_gives_files_with_their_hashes_and_what_pip_asks_of_them():
    assert links(PAGE, AT) == (
        Link(
            "six-1.17.0-py2.py3-none-any.whl",
            "https://user@index.example/root/files/six-1.17.0-py2.py3-none-any.whl",
            "sha256=4721",
            (("data-requires-python", ">=2.7, !=3.0.*"),),
        ),
        Link("six+-1.16.0.tar.gz", "https://files.example/aa/six%2B-1.16.0.tar.gz?token=secret", "md5=1",
             (("data-yanked", ""),)),
    )  # fmt: skip


def test_a_page_may_name_the_place_that_its_links_are_told_from():
    [link] = links('<base href="/other/"><base href="/no/"><a href="six-1.0.tar.gz">six</a>', AT)
    assert link.url == "https://user@index.example/other/six-1.0.tar.gz"


def test_a_page_of_ours_holds_the_same_files_and_no_address():
    ours = make_index_page(links(PAGE, AT))
    assert not [word for word in ("example", "secret", "user", "token") if word in ours]
    again = links(ours, "http://here/simple/six/")
    assert [(link.filename, link.hash, link.attributes) for link in again] == [
        (link.filename, link.hash, link.attributes) for link in links(PAGE, AT)
    ]
    assert again[0].url == f"http://here/file/{links(PAGE, AT)[0].id}/six-1.17.0-py2.py3-none-any.whl"


def test_what_an_index_calls_its_files_breaks_no_page():
    hostile = Link('a"><script>.whl', "http://x/1", 'sha256=1"><b>', (("data-yanked", '"<&'),))
    [again] = links(make_index_page([hostile]), "http://here/simple/a/")
    assert (again.filename, again.hash, again.attributes) == (hostile.filename, hostile.hash, hostile.attributes)
