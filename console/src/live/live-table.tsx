import type { ComponentChild } from "preact";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import type { IconName } from "../parts/icon.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import type { Live } from "./use-live.ts";

interface LiveTableProps<T> {
  readonly title: string;
  readonly live: Live<readonly T[]>;
  readonly columns: readonly (readonly [title: string, cell: (entry: T) => ComponentChild])[];
  readonly keyOf: (entry: T) => string;
  readonly icon: IconName;
  /** The text for a list without entries. */
  readonly empty: string;
  readonly actions?: ComponentChild;
}

/** A list of the API in each of its states: loading, failed, empty, and with entries. */
export function LiveTable<T>({ title, live, columns, keyOf, icon, empty, actions }: LiveTableProps<T>) {
  const { data, error, reload } = live;
  return (
    <Card title={title} flush actions={actions}>
      {data === undefined ? (
        <div class="body">{error === undefined ? <Loading /> : <ErrorNotice error={error} onRetry={reload} />}</div>
      ) : data.length === 0 ? (
        <Empty icon={icon} title={empty} />
      ) : (
        <table class="table">
          <caption class="visually-hidden">{title}</caption>
          <thead>
            <tr>
              {columns.map(([name]) => (
                <th key={name} scope="col">
                  {name === "" ? <span class="visually-hidden">Actions</span> : name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {data.map((entry) => (
              <tr key={keyOf(entry)}>
                {columns.map(([name, cell]) => (
                  <td key={name} class={name === "" ? "actions" : undefined}>
                    {cell(entry)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}
