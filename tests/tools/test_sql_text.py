"""SQL text: where statements end, and what in them is a placeholder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.model.outcome import ToolError
from noetl.tools.sql.sql_task import controls_transaction
from noetl.tools.sql.text import (
    MYSQL,
    POSTGRES,
    SNOWFLAKE,
    SQLITE,
    SqlDialect,
    plan_binding,
    split_statements,
)


def texts(text: str, dialect: SqlDialect = POSTGRES) -> list[str]:
    return [statement.text for statement in split_statements(text, dialect)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("select 1; ;; select 2 ;", ["select 1", "select 2"]),
        ("select ';' ; select 'it''s;'", ["select ';'", "select 'it''s;'"]),
        ('select ";" ; select "a"";"', ['select ";"', 'select "a"";"']),
        (r"select E'\';', e'\\';x", [r"select E'\';', e'\\'", "x"]),
        (r"select 'a\'; select 2", [r"select 'a\'", "select 2"]),
        ("select $$;$$; select $a$ ; $$ ; $b$ ; $a$", ["select $$;$$", "select $a$ ; $$ ; $b$ ; $a$"]),
        ("select a$b$; x$b$", ["select a$b$", "x$b$"]),
        ("select 1 -- ;\n, 2; x", ["select 1 -- ;\n, 2", "x"]),
        ("a /* ; /* ; */ ; */ b; c", ["a /* ; /* ; */ ; */ b", "c"]),
        ("-- nothing\n;/* at all */", []),
        ("", []),
        ("select 'no end; x", ["select 'no end; x"]),
        ("select $$ no end; x", ["select $$ no end; x"]),
        ("/* no end; x", []),
        (
            "create function f() returns int begin atomic select case when true then 1 end; select 2; end; x",
            [
                "create function f() returns int begin atomic select case when true then 1 end; select 2; end",
                "x",
            ],
        ),
        (
            "create rule r as on insert to t do (insert into a values (1); insert into b values (2)); x",
            ["create rule r as on insert to t do (insert into a values (1); insert into b values (2))", "x"],
        ),
        ("begin; select 1; commit", ["begin", "select 1", "commit"]),
    ],
)
def test_a_text_is_split_where_postgres_would(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('select [a;b], `c;d`, "e;"; x', ['select [a;b], `c;d`, "e;"', "x"]),
        ("a /* /* ; */ ; b", ["a /* /* ; */", "b"]),
        (
            "create temp trigger t after insert on a begin select 1; update b set c = case d when 1 then 2 end; end; x",
            [
                "create temp trigger t after insert on a begin select 1; update b set c = case d when 1 then 2 end; end",
                "x",
            ],
        ),
        ("begin; create table trigger_log (a); end", ["begin", "create table trigger_log (a)", "end"]),
        ("create table trigger (begin int); x", ["create table trigger (begin int)", "x"]),
        ("create index trigger on a (begin); x", ["create index trigger on a (begin)", "x"]),
        (
            "create trigger t after insert on a begin b; end; x",
            ["create trigger t after insert on a begin b; end", "x"],
        ),
        ("create temporary trigger t begin b; end; x", ["create temporary trigger t begin b; end", "x"]),
        ("create begin; x", ["create begin", "x"]),
    ],
)
def test_a_text_is_split_where_sqlite_would(text: str, expected: list[str]) -> None:
    assert texts(text, SQLITE) == expected


def test_a_statement_knows_its_line_with_its_comment_and_its_first_words() -> None:
    first, second = split_statements(
        "\n-- first\nselect 1;\n\n  insert into t\nvalues (1) returning a", POSTGRES
    )
    assert (first.line, first.words, first.returning) == (2, ("SELECT", "1"), False)
    assert (second.line, second.words[:3], second.returning) == (5, ("INSERT", "INTO", "T"), True)


PIECES = [
    "select 1",
    "x'",
    "'",
    '"',
    ";",
    "--",
    "\n",
    "/*",
    "*/",
    "$$",
    "$a$",
    "(",
    ")",
    "begin atomic",
    "end",
    "E'\\",
    "%s",
    "begin not atomic",
    "declare",
    "end if",
    "#",
    "//",
    "/*!",
    "\\'",
]


@given(st.lists(st.sampled_from(PIECES)).map(" ".join), st.sampled_from([POSTGRES, SQLITE, MYSQL, SNOWFLAKE]))
def test_any_text_is_taken_apart_without_loss(text: str, dialect: SqlDialect) -> None:
    offset = 0
    for statement in split_statements(text, dialect):
        offset = text.index(statement.text, offset)
        assert statement.line == text.count("\n", 0, offset) + 1
        assert all(
            statement.text[placeholder.start : placeholder.end] for placeholder in statement.placeholders
        )
        offset += len(statement.text)


@pytest.mark.parametrize(
    ("text", "params", "bound", "values"),
    [
        ("select %s, %s", [1, 2], "select $1, $2", [1, 2]),
        ("select $2, $1, $2", [1, 2], "select $1, $2, $1", [2, 1]),
        ("select %(a)s, %(b)s, %(a)s", {"a": 1, "b": 2, "c": 3}, "select $1, $2, $1", [1, 2]),
        ("select :a, :b::int, x::text", {"a": 1, "b": 2}, "select $1, $2::int, x::text", [1, 2]),
        (
            "select a[1:n], '%s :a', \":a\", f(a := :a)",
            {"a": 1},
            "select a[1:n], '%s :a', \":a\", f(a := $1)",
            [1],
        ),
        ("select %s where a like 'x%' -- %s", [1], "select $1 where a like 'x%' -- %s", [1]),
        ("select 7 %% %s", [2], "select 7 % $1", [2]),
        ("select 7 %% :a", {"a": 1}, "select 7 %% $1", [1]),
        ("select 7 %s2, a ? 'b'", [], "select 7 %s2, a ? 'b'", []),
        ("select %(two words)s", {"two words": 1}, "select $1", [1]),
    ],
)
def test_placeholders_become_those_of_postgres(
    text: str, params: list[int], bound: str, values: list[int]
) -> None:
    (statement,) = split_statements(text, POSTGRES)
    plan = plan_binding(statement, POSTGRES, named=isinstance(params, dict))
    assert (plan.text, plan.values(params)) == (bound, values)


@pytest.mark.parametrize(
    ("text", "params", "bound", "values"),
    [
        ("select ?, ?", [1, 2], "select ?1, ?2", [1, 2]),
        ("select ?2, ?1", [1, 2], "select ?1, ?2", [2, 1]),
        ("select :a, :a", {"a": 1}, "select ?1, ?1", [1]),
        ("select @a", {"a": 1}, "select ?1", [1]),
        ("select $a", {"a": 1}, "select ?1", [1]),
        ("select %s, %(", [1], "select ?1, %(", [1]),
        ("select %(a)s", {"a": 1}, "select ?1", [1]),
        ("select '?', [?], ?", [1], "select '?', [?], ?1", [1]),
    ],
)
def test_placeholders_become_those_of_sqlite(
    text: str, params: list[int], bound: str, values: list[int]
) -> None:
    (statement,) = split_statements(text, SQLITE)
    plan = plan_binding(statement, SQLITE, named=isinstance(params, dict))
    assert (plan.text, plan.values(params)) == (bound, values)


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("select %s, $1", [1], "the statement has the placeholders `$1` and `%s`: use one style"),
        (
            "select %s",
            {"a": 1},
            "has placeholders such as `%s`, and the values are a mapping: use `%s` or `$1`",
        ),
        ("select :a", [1], "has placeholders such as `:name`, and the values are a list"),
        ("select :a, :b", {"a": 1}, "no value is given for `b`"),
        ("select %s, %s", [1], "the statement asks for 2 values, and there are 1"),
        ("select $3", [1], "the statement asks for 3 values, and there are 1"),
    ],
)
def test_values_that_do_not_go_with_the_statement_are_refused(
    text: str, params: list[int], message: str
) -> None:
    (statement,) = split_statements(text, POSTGRES)
    with pytest.raises(ToolError) as refused:
        plan_binding(statement, POSTGRES, named=isinstance(params, dict)).values(params)
    assert message in str(refused.value)
    assert refused.value.info.kind == "input"


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1 -- a; b\n; select 2 # c; d\n; select 5--2;", ["select 1 -- a; b", "select 2 # c; d", "select 5--2"]),
        ("select 'a\\'; b', \"c;\\\"\", `d;`; select 2", ["select 'a\\'; b', \"c;\\\"\", `d;`", "select 2"]),
        ("/* a; */ select 1; /*!40101 set @a = 1; */; /*M!100100 set @b = 2 */", ["/* a; */ select 1", "/*!40101 set @a = 1; */", "/*M!100100 set @b = 2 */"]),
        ("begin; select 1; commit", ["begin", "select 1", "commit"]),
        ("begin not atomic select 1; select 2; end; select 3", ["begin not atomic select 1; select 2; end", "select 3"]),
        (
            ("create or replace definer=`a`@`b` procedure p() begin if x then select 1; end if; case y when 1 then begin end; "
            "end case; repeat set z = case z when 1 then 2 end; until z end repeat; end; select 2"),
            [
                ("create or replace definer=`a`@`b` procedure p() begin if x then select 1; end if; case y when 1 then begin end; "
                "end case; repeat set z = case z when 1 then 2 end; until z end repeat; end"),
                "select 2",
            ],
        ),
        (
            "create trigger t before insert on a for each row begin set new.end = 1, @begin = 2; end; select 2",
            ["create trigger t before insert on a for each row begin set new.end = 1, @begin = 2; end", "select 2"],
        ),
        ("create table event (`begin` int, function int); select 1", ["create table event (`begin` int, function int)", "select 1"]),
    ],
)  # fmt: skip
def test_scripts_of_mysql_are_taken_apart(text: str, statements: list[str]) -> None:
    assert texts(text, MYSQL) == statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1 // a; b\n; select 2 -- c; d", ["select 1 // a; b", "select 2 -- c; d"]),
        ("select 'a\\'; b', $$c; '$$, \"d;\"; select 2", ["select 'a\\'; b', $$c; '$$, \"d;\"", "select 2"]),
        ("begin; select 1; commit", ["begin", "select 1", "commit"]),
        ("begin transaction; select 1; commit", ["begin transaction", "select 1", "commit"]),
        ("begin work name a; select 1; rollback", ["begin work name a", "select 1", "rollback"]),
        ("begin let x := 1; return x; end; select 2", ["begin let x := 1; return x; end", "select 2"]),
        (
            "declare x int; begin for r in c do x := 1; end for; begin x := 2; end; end; select 2",
            ["declare x int; begin for r in c do x := 1; end for; begin x := 2; end; end", "select 2"],
        ),
        (
            "create procedure p() returns int as declare x int; begin return x; end; select 2",
            ["create procedure p() returns int as declare x int; begin return x; end", "select 2"],
        ),
    ],
)
def test_scripts_of_snowflake_are_taken_apart(text: str, statements: list[str]) -> None:
    assert texts(text, SNOWFLAKE) == statements


def test_a_block_that_is_run_is_no_transaction() -> None:
    for text, dialect in (("begin not atomic select 1; end", MYSQL), ("begin return 1; end", SNOWFLAKE)):
        (statement,) = split_statements(text, dialect)
        assert not controls_transaction(statement)
        (first, *_) = split_statements("begin; select 1", dialect)
        assert controls_transaction(first)


@pytest.mark.parametrize(
    ("dialect", "text", "params", "bound", "values"),
    [
        (MYSQL, "select ?, ?", [1, 2], "select ?, ?", [1, 2]),
        (MYSQL, "select :a, :b, :a, @c := :b", {"a": 1, "b": 2}, "select ?, ?, ?, @c := ?", [1, 2, 1, 2]),
        (MYSQL, "select %s, '?', `?`, \"?\" # ?", [1], "select ?, '?', `?`, \"?\" # ?", [1]),
        (MYSQL, "select %(a)s %% %(a)s", {"a": 1}, "select ? % ?", [1, 1]),
        (SNOWFLAKE, "select ?, $$?$$ // ?", [1], "select ?, $$?$$ // ?", [1]),
        (SNOWFLAKE, "select :2, :1, :2", [1, 2], "select ?, ?, ?", [2, 1, 2]),
        (SNOWFLAKE, "select a:b.c::int, :b, \"x\":b, f(x):b", {"b": 2}, "select a:b.c::int, ?, \"x\":b, f(x):b", [2]),
    ],
)  # fmt: skip
def test_placeholders_become_those_of_mysql_and_snowflake(
    dialect: SqlDialect, text: str, params: list[int], bound: str, values: list[int]
) -> None:
    (statement,) = split_statements(text, dialect)
    plan = plan_binding(statement, dialect, named=isinstance(params, dict))
    assert (plan.text, plan.values(params)) == (bound, values)
