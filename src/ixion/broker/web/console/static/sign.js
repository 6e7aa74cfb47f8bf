// Logging in and out. The cookie of a session is not for scripts: the broker sets it and takes it away.
"use strict";

{
async function post(path, body) {
  const answer = await fetch(`/api/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.ok) return;
  const found = await answer.json().catch(() => ({}));
  throw new Error(found.error || `the broker answered ${answer.status}`);
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-sign-in]");
  if (!form) return;
  event.preventDefault();
  const output = form.querySelector("output");
  const button = form.querySelector("button");
  output.textContent = "";
  button.disabled = true;
  try {
    await post("session", Object.fromEntries(new FormData(form)));
    location.reload();
  } catch (error) {
    button.disabled = false;
    output.classList.add("warn");
    output.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
    for (const each of form.querySelectorAll("input[type=password]")) each.value = "";
    form.querySelector("input[type=password]").focus();
  }
});

document.addEventListener("click", async (event) => {
  if (!event.target.closest("[data-sign-out]")) return;
  await post("session/end", {});
  location.assign("/");
});
}
