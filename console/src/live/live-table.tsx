import type { ComponentChild, ComponentChildren } from "preact";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import type { IconName } from "../parts/icon.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import { type Columns, Table } from "../parts/table.tsx";
import type { Live } from "./use-live.ts";

interface LiveTableProps<T> {
  readonly title: string;
  readonly live: Live<readonly T[]>;
  readonly columns: Columns<T>;
  readonly keyOf: (entry: T) => string;
  readonly icon: IconName;
  /** The text for a list without entries. */
  readonly empty: string;
  /** The next step, below that text. */
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChild;
}

/** A list of the API in each of its states: loading, failed, empty, and with entries. */
export function LiveTable<T>({ title, live, columns, keyOf, icon, empty, children, actions }: LiveTableProps<T>) {
  const { data, error, reload } = live;
  return (
    <Card title={title} flush actions={actions}>
      {data === undefined ? (
        <div class="body">{error === undefined ? <Loading /> : <ErrorNotice error={error} onRetry={reload} />}</div>
      ) : data.length === 0 ? (
        <Empty icon={icon} title={empty}>
          {children}
        </Empty>
      ) : (
        <Table title={title} entries={data} keyOf={keyOf} columns={columns} />
      )}
    </Card>
  );
}
