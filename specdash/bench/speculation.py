"""Does speculation pay? Accept length, cycle time and break-even from what can be seen from outside.

Per sequence: a plain decode step takes ``1 / rate`` of the baseline; a cycle of drafting and verifying takes
``L / rate`` of the speculating server and yields L tokens (accepted ones and the bonus token). It pays as
soon as L passes break-even L* = cycle / step = L · rate_base / rate_spec; the speed-up is L / L*. Nothing is
assumed of what a draft costs. Leviathan et al. 2023 (arXiv 2211.17192) for E[L].
"""

from __future__ import annotations

import math

import msgspec


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """The arithmetic of one speculating run, beside a baseline where one is known."""

    accept_length: float
    cycle_ms: float
    """One round of drafting and verifying, as a user waits for it."""
    steps: int | None = None
    per_position: tuple[float, ...] = ()
    step_ms: float | None = None
    """A plain decode step of the baseline."""
    break_even: float | None = None
    """Tokens that a cycle must yield so that it pays."""
    speed_up: float | None = None
    needs_alpha: float | None = None
    """The chance, draft token by draft token, at which it would pay; None: never, or not known."""
    has_alpha: float | None = None
    """The same as it is, taken from the accept length."""

    @property
    def most(self) -> int | None:
        """The accept length no draft can pass."""
        return None if self.steps is None else self.steps + 1

    @property
    def hopeless(self) -> bool:
        """No draft can win here, however good: a cycle costs more than it can yield."""
        return self.break_even is not None and self.most is not None and self.break_even > self.most


def speculation(
    accept_length: float,
    rate: float,
    *,
    baseline: float | None = None,
    steps: int | None = None,
    per_position: tuple[float, ...] = (),
) -> Speculation:
    """From decode rates of one stream in tokens a second (1 / TPOT), at equal concurrency and lengths.

    Raises ``ValueError`` where a rate or the length is no positive number.
    """
    if not (accept_length >= 1 and rate > 0 and (baseline is None or baseline > 0)):
        raise ValueError("an accept length of at least 1 and rates above 0 are needed")
    cycle = accept_length / rate
    out = Speculation(
        accept_length=accept_length, cycle_ms=cycle * 1000, steps=steps, per_position=per_position
    )
    if steps is not None:
        out = msgspec.structs.replace(out, has_alpha=alpha(accept_length, steps))
    if baseline is None:
        return out
    even = cycle * baseline
    return msgspec.structs.replace(
        out,
        step_ms=1000 / baseline,
        break_even=even,
        speed_up=rate / baseline,
        needs_alpha=None if steps is None else alpha(even, steps),
    )


def expected(chance: float, steps: int) -> float:
    """E[L]: tokens of a cycle with ``steps`` drafts, each accepted with ``chance`` if those before were."""
    return sum(chance**n for n in range(steps + 1))


def alpha(length: float, steps: int) -> float | None:
    """The chance that yields this accept length; None where none can."""
    if not 1 <= length <= steps + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle, steps) < length else (low, middle)
    return (low + high) / 2


def line(spec: Speculation) -> str:
    """``accept 2.41 of at most 4 · cycle 40.2 ms, plain step 12.1 ms · break-even 3.32 · decode …``.

    That last is the speed of one stream while it decodes: the wait for its first token is not in it, and
    what all streams make together in a second, which tables compare, is another thing.
    """
    most = f" of at most {spec.most}" if spec.most else ""
    parts = [f"accept {spec.accept_length:.2f}{most}"]
    if spec.per_position:
        parts[0] += " (p " + " ".join(f"{p:.2f}".lstrip("0") for p in spec.per_position) + ")"
    parts.append(f"cycle {spec.cycle_ms:.1f} ms")
    if spec.break_even is not None and spec.step_ms is not None and spec.speed_up is not None:
        change = f"{100 * (spec.speed_up - 1):+.1f} %".replace("-", "−")
        parts[-1] += f", plain step {spec.step_ms:.1f} ms"
        parts += [f"break-even {spec.break_even:.2f}", f"decode without TTFT {change}"]
    return " · ".join(parts)


def finding(spec: Speculation) -> str | None:
    """What it means, in one sentence; None where no baseline tells."""
    if spec.break_even is None or spec.speed_up is None or spec.step_ms is None:
        return None
    if spec.hopeless:
        return (
            f"no draft can win here: break-even {spec.break_even:.2f} is above {spec.most}, the most that"
            f" {spec.steps} steps can yield; a cycle costs {spec.cycle_ms / spec.step_ms:.1f} plain steps"
        )
    if spec.speed_up >= 1:
        return f"it pays: a cycle yields {spec.accept_length:.2f} tokens and needs {spec.break_even:.2f}"
    if spec.needs_alpha is not None and spec.has_alpha is not None:
        return (
            f"it does not pay: needs a draft accepted {_share(spec.needs_alpha)} of the time,"
            f" has about {_share(spec.has_alpha)}"
        )
    return f"it does not pay: a cycle yields {spec.accept_length:.2f} tokens and needs {spec.break_even:.2f}"


def _share(chance: float) -> str:
    return f"{100 * chance:.0f} %"


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What is known besides of the run and its server. None: not known."""

    cuda_graph: bool | None = None
    tp: int | None = None
    concurrency: int | None = None
    temperature: float | None = None
    ignore_eos: bool | None = None


def cause(spec: Speculation, known: Circumstances) -> str | None:
    """The likeliest reason why it is slower, for a person to check; None where it is not slower."""
    if spec.speed_up is None or spec.speed_up >= 1 or spec.step_ms is None:
        return None
    dear = spec.cycle_ms / spec.step_ms
    if known.cuda_graph is False:
        return "decode ran without CUDA graphs: is the verify batch larger than the captured ones?"
    if _guesses_badly(spec):
        return _poor_draft(known)
    if known.tp is not None and known.tp >= 4:
        return f"a cycle costs {dear:.1f} plain steps: each draft step pays the all-reduce of TP{known.tp}"
    if known.concurrency is not None and known.concurrency >= 16:
        return f"a cycle costs {dear:.1f} plain steps: {known.concurrency} streams leave no spare compute"
    return f"a cycle costs {dear:.1f} plain steps: verifying is dear here, not the draft's guesses"


def _guesses_badly(spec: Speculation) -> bool:
    if spec.per_position:
        return spec.per_position[0] < 0.5
    return spec.has_alpha is not None and spec.has_alpha < 0.5


def _poor_draft(known: Circumstances) -> str:
    lead = "the draft guesses badly (less than half of its first tokens are accepted)"
    if known.ignore_eos:
        return f"{lead}; answers forced past their end (ignore_eos) are not typical text"
    if known.temperature is not None and not math.isclose(known.temperature, 0.0):
        return f"{lead}; a temperature of {known.temperature:g} lowers it"
    return f"{lead}: is it the draft of this very model?"
