import { useState } from "preact/hooks";
import type { QueryResult } from "@holdfast/sdk/responses.ts";
import { visibleText } from "../logs/logs-view.ts";
import { cellText, windowOf } from "./query-view.ts";

/** Height of a row in the style sheet. */
const rowHeight = 36;

/** The rows of a result. Only those in the visible part of the table are in the document. */
export function ResultTable({
  result: { columns, rows },
  title,
}: {
  readonly result: QueryResult;
  readonly title: string;
}) {
  const [scroll, setScroll] = useState({ top: 0, height: 600 });
  const { first, end } = windowOf(scroll.top, scroll.height, rowHeight, rows.length);
  return (
    <div
      class="result"
      tabIndex={0}
      role="group"
      aria-label={title}
      onScroll={({ currentTarget: { scrollTop: top, clientHeight: height } }) => setScroll({ top, height })}
    >
      <table class="table" aria-rowcount={rows.length + 1}>
        <caption class="visually-hidden">{title}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} scope="col">
                {visibleText(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Spacer rows={first} columns={columns.length} />}
          {rows.slice(first, end).map((row, index) => (
            <tr key={first + index} aria-rowindex={first + index + 2}>
              {row.map((cell, column) => (
                <td key={column} class={cell === null ? "cell-null" : "mono small"} title={cellText(cell)}>
                  {cellText(cell)}
                </td>
              ))}
            </tr>
          ))}
          {end < rows.length && <Spacer rows={rows.length - end} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  return (
    <tr class="spacer" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}
