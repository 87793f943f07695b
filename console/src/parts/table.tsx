import type { ComponentChild } from "preact";

/** Columns of a table; one without a title has the actions of the entries. */
export type Columns<T> = readonly (readonly [title: string, cell: (entry: T) => ComponentChild])[];

interface TableProps<T> {
  readonly title: string;
  readonly entries: readonly T[];
  readonly keyOf: (entry: T) => string;
  readonly columns: Columns<T>;
}

/** Entries as rows, below their caption for screen readers. */
export function Table<T>({ title, entries, keyOf, columns }: TableProps<T>) {
  return (
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
        {entries.map((entry) => (
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
  );
}
