"""Small batches that claim or become gigabytes: refused by name, with the memory peak of a process of their own.

tracemalloc does not see what C libraries allocate, so every bomb runs in a fresh process that reports by how much its
resident set grew at its highest.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# What a bomb may cost beyond the libraries: the pieces in flight and slack of the allocator, far below what it claims.
ALLOWED_MB = 24

# Each makes `payload`, the compressed records of a batch, from `records`, which are 256 records of 1 MiB of zeros.
GROW = {
    "gzip, 256 MiB in 260 kB": """
import zlib
packer = zlib.compressobj(1, zlib.DEFLATED, 31)
payload = b"".join(packer.compress(one) for one in records) + packer.flush()
codec = 1
""",
    "snappy, framed, 256 MiB in 13 MB": """
import cramjam
blocks = [bytes(cramjam.snappy.compress_raw(one)) for one in records]
payload = b"\\x82SNAPPY\\0\\0\\0\\0\\x01\\0\\0\\0\\x01" + b"".join(len(one).to_bytes(4, "big") + one for one in blocks)
codec = 2
""",
    "lz4, 256 MiB in 1 MB": """
import lz4.frame
packer = lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX4MB)
payload = packer.begin() + b"".join(packer.compress(one) for one in records) + packer.flush()
codec = 3
""",
    "zstd, 256 MiB in 25 kB": """
packer = zstd.ZstdCompressor()
payload = b"".join(packer.compress(one) for one in records) + packer.flush()
assert len(payload) < 100_000
codec = 4
""",
    "zstd, a record of 1 GiB": """
packer = zstd.ZstdCompressor()
records = [record(0, length=1 << 30)] + records
payload = b"".join(packer.compress(one) for one in records) + packer.flush()
codec = 4
""",
}
LIE = {
    "snappy, a bare block that claims 4 GiB": """
payload = b"\\xff\\xff\\xff\\xff\\x0f" + bytes(1000)
codec = 2
""",
    "snappy, a bare block that claims 20 times its megabyte": """
payload = b"\\x80\\x80\\x80\\x0a" + b"\\xfe\\x01\\x00" * 333333
codec = 2
""",
    "snappy, a framed block that claims 2 GiB": """
payload = b"\\x82SNAPPY\\0\\0\\0\\0\\x01\\0\\0\\0\\x01" + b"\\x7f\\xff\\xff\\xff" + bytes(1000)
codec = 2
""",
    "lz4, a frame that claims an exabyte": """
import lz4.frame
payload = bytearray(lz4.frame.compress(bytes(100)))
assert payload[4] & 8
payload[6:14] = (1 << 60).to_bytes(8, "little")
payload = bytes(payload)
codec = 3
""",
    "zstd, a frame that claims an exabyte": """
payload = bytes.fromhex("28b52ffd e0") + (1 << 60).to_bytes(8, "little") + bytes.fromhex("030000") * 100
codec = 4
""",
    "zstd, a window of 3.75 TiB": """
payload = bytes.fromhex("28b52ffd 00 ff") + bytes.fromhex("02000f00") * 100
codec = 4
""",
}

RUN = """
import ctypes, sys
from ixion.language.model.errors import KafkaError
from ixion.language.records.compression import Codec, compress, inflate
from ixion.language.records.validate import TopicRules, validate_produce
from tests.records.forge import batch, record
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
zeros = bytes(1 << 20)
records = [record(n, value=zeros) for n in range(256)]
{make}
del records
inflate(Codec(codec), compress(Codec(codec), b"the library is loaded now"))
data = batch(payload, attributes=codec, count=256)
ctypes.CDLL(None).malloc_trim(0)  # give back what the making left free, or the bomb would be hidden in it
open("/proc/self/clear_refs", "w").write("5")  # forget the peak of the making
def memory(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
before = memory("VmRSS")
try:
    validate_produce(data, TopicRules(max_batch_bytes=1 << 30), 0)
except KafkaError as error:
    print(error.code.name, max(memory("VmHWM") - before, 0) // 1024)
"""


def explode(make: str) -> tuple[str, int]:
    done = subprocess.run([sys.executable, "-c", RUN.format(make=make)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code, megabytes = done.stdout.split()
    return code, int(megabytes)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident set from /proc")


@pytest.mark.parametrize("make", GROW.values(), ids=GROW.keys())
def test_a_bomb_is_stopped_while_it_grows(make: str) -> None:
    code, megabytes = explode(make)
    assert code == "MESSAGE_TOO_LARGE"
    assert megabytes <= ALLOWED_MB


@pytest.mark.parametrize("make", LIE.values(), ids=LIE.keys())
def test_a_lie_about_sizes_allocates_nothing(make: str) -> None:
    code, megabytes = explode(make)
    assert code == "INVALID_RECORD"
    assert megabytes <= ALLOWED_MB
