import { useState } from "preact/hooks";
import type { QueryResult } from "@holdfast/sdk/responses.ts";
import { visibleText } from "../logs/logs-view.ts";
import { cellText, windowOf } from "./query-view.ts";

/** Height of a row in the style sheet. */
const rowHeight = 36;
/** Width of a column of a wide table. */
const columnWidth = 160;
/** A table with more columns is wide: its columns have one width, so that those out of sight need no cells. */
const maxColumns = 30;

interface ResultTableProps {
  readonly result: QueryResult;
  readonly title: string;
}

/** The rows of a result. Only cells in the visible part of the table, and some beside it, are in the document. */
export function ResultTable({ result: { columns, rows }, title }: ResultTableProps) {
  const [scroll, setScroll] = useState({ top: 0, height: 600, left: 0, width: 1_280 });
  const { first, end } = windowOf(scroll.top, scroll.height, { size: rowHeight, count: rows.length, spare: 10 });
  const isWide = columns.length > maxColumns;
  const visible = isWide
    ? windowOf(scroll.left, scroll.width, { size: columnWidth, count: columns.length, spare: 4 })
    : { first: 0, end: columns.length };
  const before = visible.first;
  const after = columns.length - visible.end;
  return (
    <div
      class="result"
      tabIndex={0}
      role="group"
      aria-label={title}
      onScroll={({ currentTarget: { scrollTop: top, clientHeight: height, scrollLeft: left, clientWidth: width } }) =>
        setScroll({ top, height, left, width })
      }
    >
      <table
        class={isWide ? "table wide" : "table"}
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        style={isWide ? { width: `${columns.length * columnWidth}px` } : undefined}
      >
        <caption class="visually-hidden">{title}</caption>
        <thead>
          <tr>
            <ColumnSpacer columns={before} />
            {columns.slice(before, visible.end).map((column, index) => (
              <th
                key={before + index}
                scope="col"
                aria-colindex={before + index + 1}
                title={isWide ? visibleText(column) : undefined}
              >
                {visibleText(column)}
              </th>
            ))}
            <ColumnSpacer columns={after} />
          </tr>
        </thead>
        <tbody>
          {first > 0 && <RowSpacer rows={first} />}
          {rows.slice(first, end).map((row, index) => (
            <tr key={first + index} aria-rowindex={first + index + 2}>
              <ColumnSpacer columns={before} />
              {row.slice(before, visible.end).map((cell, column) => (
                <td
                  key={before + column}
                  aria-colindex={before + column + 1}
                  class={cell === null ? "cell-null" : "mono small"}
                  title={cellText(cell)}
                >
                  {cellText(cell)}
                </td>
              ))}
              <ColumnSpacer columns={after} />
            </tr>
          ))}
          {end < rows.length && <RowSpacer rows={rows.length - end} />}
        </tbody>
      </table>
    </div>
  );
}

/** The place of rows that are out of sight. */
function RowSpacer({ rows }: { readonly rows: number }) {
  return (
    <tr class="spacer" aria-hidden="true">
      <td style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}

/** The place of columns that are out of sight, in one row. */
function ColumnSpacer({ columns }: { readonly columns: number }) {
  if (columns === 0) return null;
  return <td class="spacer" aria-hidden="true" style={{ width: `${columns * columnWidth}px` }} />;
}
