/** The login form as HTML, without scripts and without content of other origins. */
export function loginPage(form: {
  /** Path that the form is sent to. */
  readonly action: string;
  /** Path of the app that the user requested. */
  readonly returnTo: string;
  /** Fault of the last attempt; empty without one. */
  readonly fault: string;
}): string {
  const fault = form.fault === "" ? "" : `<p role="alert">${escaped(form.fault)}</p>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { display: grid; min-height: 100vh; margin: 0; place-items: center }
form { display: grid; gap: 0.75rem; width: min(20rem, 90vw) }
h1 { font-size: 1.25rem; margin: 0 }
p { margin: 0 }
label { display: grid }
input, button { box-sizing: border-box; font: inherit; padding: 0.5rem; width: 100% }
</style>
</head>
<body>
<main>
<form method="post" action="${escaped(form.action)}">
<h1>Sign in</h1>
${fault}
<label>User name <input name="username" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<input type="hidden" name="return_to" value="${escaped(form.returnTo)}">
<button>Sign in</button>
</form>
</main>
</body>
</html>
`;
}

function escaped(value: string): string {
  return value
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
