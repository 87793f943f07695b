import { signal } from "@preact/signals";
import { Icon } from "./icon.tsx";

interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
}

const toasts = signal<readonly Toast[]>([]);
let last = 0;
/** Time for which a message is visible; that of an error is longer. */
const visibleMs: Readonly<Record<Toast["tone"], number>> = { good: 5_000, bad: 12_000 };

/** Shows a short message for a few seconds. */
export function showToast(tone: Toast["tone"], text: string): void {
  const id = (last += 1);
  const others = toasts.value.filter((toast) => toast.text !== text);
  toasts.value = [...others.slice(-2), { id, tone, text }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((toast) => toast.id !== id);
  }, visibleMs[tone]);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, tone, text }) => (
        <div class="notice" data-tone={tone} key={id}>
          <Icon name={tone === "good" ? "check" : "alert"} />
          <span>{text}</span>
        </div>
      ))}
    </div>
  );
}
