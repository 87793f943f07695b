import type { ComponentChildren } from "preact";
import { ApiError } from "@holdfast/sdk/errors.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

type Tone = "info" | "good" | "warn" | "bad";

const icons: Readonly<Record<Tone, IconName>> = { info: "info", good: "check", warn: "alert", bad: "alert" };

/** A message in the page. */
export function Notice({ tone = "info", children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return (
    <div class="notice" data-tone={tone} role={tone === "bad" ? "alert" : "status"}>
      <Icon name={icons[tone]} />
      <div>{children}</div>
    </div>
  );
}

/** An error of the API or of the network, with its advice and the id of the request. */
export function ErrorNotice({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  if (error === undefined) return null;
  const problem = error instanceof ApiError ? error : undefined;
  if (problem?.code === "scope_missing") return <Notice>{problem.message}</Notice>;
  return (
    <Notice tone="bad">
      <b>{problem?.problem.title ?? "The request failed"}</b>
      <p>{problem?.message ?? (error instanceof Error ? error.message : "The reason is unknown.")}</p>
      {problem?.help && <p class="small">{problem.help}</p>}
      {problem?.requestId && <p class="small quiet mono">Request {problem.requestId}</p>}
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </Notice>
  );
}

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** The content of an empty page: what will be here, and the next step. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
