"""What the tests cost: CPU seconds of this process and programs that XLA compiled, by test. `pytest --costs 20` prints the most
expensive ones."""

import collections
import time

import pytest

COMPILED = "/jax/core/compile/backend_compile_duration"


class Costs:
    """A plugin; with pytest-xdist the workers count and the controller adds up what their reports say."""

    def __init__(self, shown):
        self.shown, self.compiled = shown, 0

    def listen(self):
        import jax

        def count(event, *_, **__):
            self.compiled += event == COMPILED

        jax.monitoring.register_event_duration_secs_listener(count)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        before, start = self.compiled, time.process_time()
        yield
        item.user_properties.append(("cost", (time.process_time() - start, self.compiled - before)))

    def pytest_terminal_summary(self, terminalreporter):
        stats = terminalreporter.stats
        reports = [r for kind in ("passed", "failed") for r in stats.get(kind, []) if getattr(r, "when", "") == "call"]
        seconds, programs, tests = collections.Counter(), collections.Counter(), collections.Counter()
        for report in reports:
            name = _title(report.nodeid)
            cost, count = dict(report.user_properties).get("cost", (0, 0))
            seconds[name] += cost
            programs[name] += count
            tests[name] += 1
        terminalreporter.section("costs")
        write = terminalreporter.write_line
        write(f"{tests.total()} tests, {programs.total()} compilations, {seconds.total():.0f} CPU seconds")
        for name, cost in seconds.most_common(self.shown):
            write(f"{cost:8.1f} s {programs[name]:6} compilations {tests[name]:6} tests  {name}")


def _title(nodeid):
    """A test without its parameters, a law by its name."""
    name, _, parameters = nodeid.partition("[")
    return f"law {parameters.partition('-')[0]}" if name.endswith("::test_law") else name
