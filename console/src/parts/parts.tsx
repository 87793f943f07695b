import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ageText } from "../format.ts";
import type { Tone } from "../tone.ts";
import { Button } from "./button.tsx";
import { showToast } from "./toasts.tsx";

/** A state with a color. Its text has the same information as the color. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class="badge" data-tone={tone}>
      {children}
    </span>
  );
}

interface CardProps {
  readonly title?: string;
  readonly actions?: ComponentChildren;
  /** True for content without padding, such as a table. */
  readonly flush?: boolean;
  readonly children: ComponentChildren;
}

export function Card({ title, actions, flush = false, children }: CardProps) {
  return (
    <section class="card">
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      <div class={flush ? "flush scroll" : "body"} {...(flush && { tabIndex: 0, role: "group", "aria-label": title })}>
        {children}
      </div>
    </section>
  );
}

interface PageHeadProps {
  readonly title: string;
  readonly crumbs?: ComponentChildren;
  readonly beside?: ComponentChildren;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

export function PageHead({ title, crumbs, beside, about, actions }: PageHeadProps) {
  useEffect(() => {
    document.title = `${title} - Holdfast`;
  }, [title]);
  return (
    <header class="page-head">
      <div class="stack" data-gap="s">
        {crumbs && (
          <nav class="crumbs" aria-label="Breadcrumb">
            {crumbs}
          </nav>
        )}
        <div class="row">
          <h1>{title}</h1>
          {beside}
        </div>
        {about && <p class="quiet">{about}</p>}
      </div>
      {actions && <div class="row">{actions}</div>}
    </header>
  );
}

/** A list of names with their values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface AgeProps {
  readonly time: string | null | undefined;
  /** The text without a time. */
  readonly absent?: string;
}

/** A time as its age; its tooltip has the time in UTC. */
export function Age({ time, absent = "never" }: AgeProps) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);
  if (time === null || time === undefined) return <span class="quiet">{absent}</span>;
  return (
    <time dateTime={time} title={new Date(time).toUTCString()}>
      {ageText(time, now)}
    </time>
  );
}

interface CopyButtonProps {
  readonly text: string | (() => Promise<string>);
  readonly label: string;
  /** The visible text; absent for an icon alone. */
  readonly title?: string;
}

/** A button that copies a text, which need not be on the page. */
export function CopyButton({ text, label, title }: CopyButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const copy = async () => {
    setBusy(true);
    try {
      await writeClipboard(typeof text === "string" ? text : await text());
      showToast("good", "Copied");
    } catch (error) {
      showToast("bad", error instanceof Error ? error.message : "Not copied");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button kind="plain" icon="copy" label={label} busy={isBusy} onClick={() => runQuietly(copy())}>
      {title}
    </Button>
  );
}

/** Throws an error for the user if the browser does not permit it. */
async function writeClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw new Error("The browser does not permit to copy. Select the text on the page, and copy it with the keyboard.");
  }
}

/** A text with a button that copies it. */
export function Copyable({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div class="copyable">
      <pre tabIndex={0} role="group" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} label={`Copy ${label}`} />
    </div>
  );
}

const revealMs = 30_000;

/** A secret that is requested when it is revealed or copied, and hidden again after 30 seconds. */
export function Secret({ load, label }: { readonly load: () => Promise<string>; readonly label: string }) {
  const [text, setText] = useState<string | undefined>();
  useEffect(() => {
    if (text === undefined) return undefined;
    const timer = setTimeout(() => setText(undefined), revealMs);
    return () => clearTimeout(timer);
  }, [text]);
  const reveal = async () => {
    try {
      setText(await load());
    } catch (error) {
      showToast("bad", error instanceof Error ? error.message : "Not revealed");
    }
  };
  return (
    <div class="copyable">
      <pre tabIndex={0} role="group" aria-label={label}>
        {text ?? "••••••••••••••••"}
      </pre>
      <Button
        kind="plain"
        icon="eye"
        label={text === undefined ? `Reveal ${label}` : `Hide ${label}`}
        onClick={() => (text === undefined ? runQuietly(reveal()) : setText(undefined))}
      />
      <CopyButton text={load} label={`Copy ${label}`} />
    </div>
  );
}

export function Progress({ percent, label }: { readonly percent: number; readonly label: string }) {
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <i style={{ width: `${percent}%` }} />
    </div>
  );
}

/** Placeholder lines for content that is loading. */
export function Loading({ rows = 4 }: { readonly rows?: number }) {
  return (
    <div class="stack" role="status">
      <span class="visually-hidden">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        <span class="bone" key={row} style={{ width: `${90 - ((row * 23) % 45)}%` }} />
      ))}
    </div>
  );
}

/** Ignores the rejection of work that shows its error itself. */
export function runQuietly(work: Promise<unknown>): void {
  work.catch((error: unknown) => globalThis.reportError(error));
}
