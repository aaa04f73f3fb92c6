"""`luckrate-otel exec`: run a command with its telemetry pointed here, grade what it sent.

No code of the command is changed; it is steered by the environment variables that OpenTelemetry and the frameworks
read.
"""

from luckrate_otel.execute.command import Command, Executed, execute

__all__ = ["Command", "Executed", "execute"]
