"""The fixtures for pytest, each test in a pytest run of its own, as a user's project has it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # The options of this project's own runs are not for the inner ones.
    pytester.plugins = []
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


WRITES_AND_LOOKS = """
    def test_first(asterism):
        with asterism.cosmos_client() as client:
            client.create_database("left")

    def test_second(asterism):
        with asterism.cosmos_client() as client:
            assert list(client.list_databases()) == []
"""


def test_a_test_finds_no_data_of_the_one_before_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(WRITES_AND_LOOKS)
    run(pytester).assert_outcomes(passed=2)


def test_tests_of_a_session_share_a_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        seen = set()

        def test_first(asterism):
            seen.add(asterism.pid)

        def test_second(asterism):
            seen.add(asterism.pid)
            assert len(seen) == 1
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_each_test_has_a_server_with_the_scope_test(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasterism_scope = test\n")
    pytester.makepyfile(
        """
        seen = set()

        def test_first(asterism):
            seen.add(asterism.pid)

        def test_second(asterism, asterism_server):
            assert asterism is asterism_server
            seen.add(asterism.pid)
            assert len(seen) == 2
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_a_fixture_of_the_session_keeps_its_data_on_the_server_that_is_not_emptied(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def client(asterism_server):
            with asterism_server.cosmos_client() as client:
                client.create_database("shared")
                yield client
        """
    )
    pytester.makepyfile(
        """
        def test_first(client):
            assert [each["id"] for each in client.list_databases()] == ["shared"]

        def test_second(client):
            assert [each["id"] for each in client.list_databases()] == ["shared"]
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_the_settings_of_the_project_reach_the_server(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasterism_data = disk\nasterism_options = --apis nosql --account shop\n")
    pytester.makepyfile(
        """
        def test_settings(asterism):
            assert list(asterism.ports) == ["nosql"]
            assert asterism._report["account"] == "shop"
            assert asterism._report["data"] is not None
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_a_wrong_setting_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasterism_scope = module\n")
    pytester.makepyfile("def test_nothing(asterism): ...")
    result = run(pytester)
    assert result.ret != 0
    assert "asterism_scope is 'module'; it must be one of: session, test" in result.stdout.str() + result.stderr.str()


def test_a_factory_makes_further_servers_that_end_with_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import pytest
        import time

        processes = []

        def test_two_more(asterism, asterism_factory):
            first, second = asterism_factory(), asterism_factory(options=["--apis", "table"], no_throttle=True)
            processes.extend([first.pid, second.pid])
            assert len({asterism.pid, *processes}) == 3
            assert "nosql" not in second.ports

        def test_they_have_ended():
            for process in processes:
                with pytest.raises(ProcessLookupError):
                    for _ in range(6000):
                        os.kill(process, 0)
                        time.sleep(0.01)
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_a_server_that_cannot_start_shows_its_reason(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasterism_options = --no-such-option\n")
    pytester.makepyfile("def test_nothing(asterism): ...")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unrecognized arguments: --no-such-option*"])


def test_workers_of_xdist_have_a_server_each(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(8))
        def test_number(asterism, number):
            with asterism.cosmos_client() as client:
                client.create_database("same-name")
        """
    )
    run(pytester, "-n", "2").assert_outcomes(passed=8)


def test_a_run_without_the_fixtures_loads_nothing_of_the_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            loaded = {name for name in sys.modules if name.startswith("asterism.")}
            assert loaded == {
                "asterism.testing", "asterism.testing.early_look", "asterism.testing.pytest_plugin"
            }
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_examples_of_the_guide_run(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> None:
    guide = (request.config.rootpath / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in guide.split("```python\n")[1:]]
    for number, block in enumerate(blocks):
        pytester.makepyfile(**{f"test_example_{number}": block})
    result = run(pytester)
    assert result.ret == 0, result.stdout.str()
    assert len(blocks) >= 3
