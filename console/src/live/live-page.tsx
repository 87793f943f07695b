import type { ComponentChild, ComponentChildren } from "preact";
import { NotFound } from "@holdfast/sdk/errors.ts";
import type { IconName } from "../parts/icon.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Loading, PageHead } from "../parts/parts.tsx";
import type { Live } from "./use-live.ts";

interface LivePageProps<T> {
  readonly live: Live<T>;
  /** The kind of resource, such as "webhook". */
  readonly kind: string;
  readonly icon: IconName;
  readonly crumbs: ComponentChild;
  readonly title: (data: T) => string;
  readonly beside?: (data: T) => ComponentChild;
  readonly actions?: (data: T) => ComponentChild;
  readonly children: (data: T) => ComponentChildren;
}

/** The page of one resource in each of its states: loading, failed, absent, and loaded. */
export function LivePage<T>({ live, kind, icon, crumbs, title, beside, actions, children }: LivePageProps<T>) {
  const { data, error, reload } = live;
  const heading = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
  if (error instanceof NotFound)
    return (
      <>
        <PageHead title={heading} crumbs={crumbs} />
        <Empty icon={icon} title={`There is no such ${kind}`}>
          <p class="quiet">It was deleted, or belongs to another organization.</p>
        </Empty>
      </>
    );
  if (data === undefined)
    return (
      <>
        <PageHead title={heading} crumbs={crumbs} />
        {error === undefined ? <Loading rows={6} /> : <ErrorNotice error={error} onRetry={reload} />}
      </>
    );
  return (
    <>
      <PageHead title={title(data)} crumbs={crumbs} beside={beside?.(data)} actions={actions?.(data)} />
      {children(data)}
    </>
  );
}
