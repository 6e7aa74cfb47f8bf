"""Names and bytes that would do harm on a page that forgot to escape them once."""

from __future__ import annotations

# Each would set `window.harmed`, leave its attribute or element, or load something from another host.
TEXTS = (
    "<script>window.harmed=1</script>",
    "</script><script>window.harmed=1</script>",
    "<img src=x onerror=window.harmed=1>",
    '"><img src=x onerror=window.harmed=1>',
    "' onmouseover='window.harmed=1",
    '" autofocus onfocus="window.harmed=1',
    "javascript:window.harmed=1",
    "<svg/onload=window.harmed=1>",
    "</title><script>window.harmed=1</script>",
    "<!--<script>window.harmed=1</script>-->",
    "<base href=http://evil.example/>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "{{constructor.constructor('window.harmed=1')()}}",
    "&lt;script&gt;window.harmed=1&lt;/script&gt;",
    "\u202e\u2066gnp.exe\u2069",
    "a\nevent: wheel\ndata: {}\n\nb",
    "../../../../etc/passwd",
    "%2e%2e%2f%00",
    "a/b?c=d#e&f",
)
BYTES = (
    b"\x00\x01\xff\xfe",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x92",
    b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"\x1b[2J\x1b]0;x\x07",
)
