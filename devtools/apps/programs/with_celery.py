"""A Celery worker over Kafka: tasks are sent through a topic and run in a worker of its own."""

import os
import pathlib
import subprocess
import sys
import time

from celery import Celery

app = Celery("with_celery", broker=f"confluentkafka://{os.environ['BOOTSTRAP']}")
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)
done = pathlib.Path(os.environ["FOLDER"]) / "done"


@app.task(name="note")
def note(number: int) -> None:
    with done.open("a") as file:
        file.write(f"{number}\n")


if __name__ == "__main__":
    here = str(pathlib.Path(__file__).parent)
    command = [sys.executable, "-m", "celery", "--app", "with_celery", "--workdir", here, "worker"]
    worker = subprocess.Popen([*command, "--pool", "solo", "--loglevel", "error", "--without-mingle"])
    try:
        for number in range(10):
            note.delay(number)
        end = time.monotonic() + 120
        while not done.exists() or len(done.read_text().split()) < 10:
            assert time.monotonic() < end, "the worker did not run all tasks"
            assert worker.poll() is None, "the worker has ended"
            time.sleep(0.1)
        assert sorted(map(int, done.read_text().split())) == list(range(10))
    finally:
        worker.kill()
        worker.wait()
