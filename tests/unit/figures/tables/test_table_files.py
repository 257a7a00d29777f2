"""Tables as CSV and as a page."""

from epochwatt.figures.tables.table_files import save


def test_columns_of_the_csv_are_those_of_all_rows_in_order(tmp_path):
    save(str(tmp_path / "made/t"), "T", [], [{"a": 1, "b": "x,y"}, {"a": 2, "c_mhz": 2265.6}])
    assert (tmp_path / "made/t.csv").read_text("utf-8") == 'a,b,c_mhz\n1,"x,y",\n2,,2265.6\n'
    assert "2265.6" in (tmp_path / "made/t.html").read_text("utf-8")


def test_page_may_show_other_tables_than_the_csv(tmp_path):
    save(str(tmp_path / "t"), "T", ["a note"], [{"a": 1}], [[{"b": 2}], [], [{"c": 3}]])
    text = (tmp_path / "t.html").read_text("utf-8")
    assert [f">{name}</th>" in text for name in "abc"] == [False, True, True]
    assert text.count("<table>") == 2
    assert "<p>a note</p>" in text


def test_numbers_stand_on_the_right_under_their_heading(tmp_path):
    rows = [{"mode": "a", "GPU (MHz)": "1377"}, {"mode": "b", "GPU (MHz)": 905.25}]
    save(str(tmp_path / "t"), "T", [], rows)
    text = (tmp_path / "t.html").read_text("utf-8")
    assert '<th>mode</th><th class="number">GPU (MHz)</th>' in text
    assert '<td class="short">b</td><td class="number">905.25</td>' in text
