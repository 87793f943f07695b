import type { ComponentChild } from "preact";

/** Columns of a table; one without a title has the actions of the entries. */
export type Columns<T> = readonly (readonly [title: string, cell: (entry: T) => ComponentChild])[];

interface TableProps<T> {
  readonly title: string;
  readonly entries: readonly T[];
  readonly keyOf: (entry: T) => string;
  readonly columns: Columns<T>;
}

/**
 * Entries as rows, below their caption for screen readers. On a narrow screen a row is a list of titles and values;
 * because of the roles it is still a row for screen readers.
 */
export function Table<T>({ title, entries, keyOf, columns }: TableProps<T>) {
  return (
    <table class="table stacked" role="table">
      <caption class="visually-hidden">{title}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(([name]) => (
            <th key={name} scope="col" role="columnheader">
              {name === "" ? <span class="visually-hidden">Actions</span> : name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {entries.map((entry) => (
          <tr key={keyOf(entry)} role="row">
            {columns.map(([name, cell]) => (
              <td key={name} role="cell" class={name === "" ? "actions" : undefined} data-title={name}>
                <div>{cell(entry)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
