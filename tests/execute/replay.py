"""Send captured requests to OTEL_EXPORTER_OTLP_ENDPOINT, as an exporter of OTLP/JSON would."""

import os
import sys
from pathlib import Path
from urllib.request import Request, urlopen

for name in sys.argv[1:]:
    signal = "logs" if name.endswith(".logs.jsonl") else "traces"
    for line in Path(name).read_text(encoding="utf-8").splitlines():
        url = f"{os.environ['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/{signal}"
        with urlopen(Request(url, line.encode(), {"Content-Type": "application/json"}), timeout=10) as answer:
            assert answer.status == 200
