import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import type { IconName } from "./icon.tsx";
import { showToast } from "./toasts.tsx";

interface ActionButtonProps {
  readonly icon?: IconName;
  readonly kind?: "primary" | "plain" | "normal";
  readonly refusal?: string | undefined;
  /** The change; the button is busy until it is completed. */
  readonly run: () => Promise<unknown>;
  /** The message after success; absent if the page shows the change itself. */
  readonly done?: string;
  readonly children: ComponentChildren;
}

/** A button for a change without a form. A message says how it ended. */
export function ActionButton({ run, done, kind = "normal", children, ...button }: ActionButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const start = () => {
    setBusy(true);
    run()
      .then(
        () => done !== undefined && showToast("good", done),
        (error: unknown) => showToast("bad", error instanceof Error ? error.message : "The request failed."),
      )
      .finally(() => setBusy(false));
  };
  return (
    <Button {...button} kind={kind} busy={isBusy} onClick={start}>
      {children}
    </Button>
  );
}
