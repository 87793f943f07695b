import { signal } from "@preact/signals";

type Theme = "light" | "dark";

const key = "theme";

function stored(): Theme | undefined {
  const text = globalThis.localStorage.getItem(key);
  return text === "light" || text === "dark" ? text : undefined;
}

/** The theme of the page: the chosen one, or the system's. */
export const theme = signal<Theme>(
  stored() ?? (globalThis.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"),
);

/** Applies the chosen theme, if there is one. */
export function applyTheme(): void {
  const chosen = stored();
  if (chosen !== undefined) document.documentElement.dataset.theme = chosen;
}

export function switchTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  globalThis.localStorage.setItem(key, theme.value);
  applyTheme();
}
