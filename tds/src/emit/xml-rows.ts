import type { RowFormat } from "../parse/ast.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { isBinary } from "../types/tsql-type.ts";
import type { OutputColumn } from "./context.ts";
import type { Level } from "./nested-rows.ts";

interface XmlColumn extends OutputColumn {
  readonly sql: string;
}

interface Element {
  readonly name: string;
  /** Expressions of attributes, with a blank before each; NULL for an absent one. */
  readonly attributes: string[];
  /** Expressions of texts, and elements, in the order of the columns. */
  readonly content: (string | Element)[];
  /** True if NULL is an element with the attribute `xsi:nil`. */
  readonly hasNil?: boolean;
}

/** Names of columns whose value is text in the element around it. */
const textNames = ["", "*", "text()", "node()", "data()"];

/** The aggregate of FOR XML over rows with these columns. */
export function emitXml(columns: readonly XmlColumn[], format: XmlFormat): string {
  const row: Element = { name: format.element, attributes: namespaces(format), content: [] };
  for (const column of columns) {
    if (format.mode === "raw") addToRaw(row, column, format);
    else addToPath(row, column.name, column, format);
  }
  return xmlText(`string_agg(${rowOf(row)}, '')`, format);
}

type XmlFormat = Extract<RowFormat, { kind: "xml" }>;

/** The element around the rows. */
export function xmlText(rows: string, { root: written, hasNils }: XmlFormat): string {
  if (written === undefined) return rows;
  const root = encodeName(written);
  return `${escapeLiteral(`<${root}${hasNils ? xsi : ""}>`)} || ${rows} || ${escapeLiteral(`</${root}>`)}`;
}

const xsi = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';

/** The namespace of `xsi:nil`, which is declared by the outermost elements. */
function namespaces({ hasNils, root }: XmlFormat): string[] {
  return hasNils && root === undefined ? [escapeLiteral(xsi)] : [];
}

/** The elements of AUTO: those of a table are in the element of the table before. Each has the name of its table. */
export function xmlLevels(
  levels: readonly { readonly name: string; readonly columns: readonly XmlColumn[] }[],
  format: XmlFormat,
): Level[] {
  return levels.map(({ name, columns: own }, index) => {
    const element: Element = { name, attributes: index === 0 ? namespaces(format) : [], content: [] };
    for (const column of own) addToRaw(element, column, format);
    const tag = encodeName(name);
    return {
      parts: [joined(element.attributes), joined(element.content.map(nodeOf))],
      wrap([attributes = "''", content = "''"], inner) {
        const all = inner === undefined ? content : `${content} || ${inner}`;
        const head = `${escapeLiteral(`<${tag}`)} || ${attributes}`;
        return `CASE (${all}) WHEN '' THEN ${head} || '/>' ELSE ${head} || '>' || ${all} || ${escapeLiteral(`</${tag}>`)} END`;
      },
    };
  });
}

function addToRaw(row: Element, column: XmlColumn, { hasElements, hasNils }: XmlFormat): void {
  if (column.name === "") {
    const message =
      "Unnamed tables cannot be used as XML identifiers as well as unnamed columns cannot be used for attribute names. Name unnamed columns/tables using AS in the SELECT statement.";
    throw new SqlError(6_809, message);
  }
  if (hasElements)
    row.content.push({ name: column.name, attributes: [], content: [contentOf(column)], hasNil: hasNils });
  else row.attributes.push(attributeOf(column.name, column));
}

/** A name such as `a/b`, `@a` or `a/@b`; consecutive columns of one element are in the same element. */
function addToPath(element: Element, name: string, column: XmlColumn, format: XmlFormat): void {
  const [first = "", ...rest] = name.split("/");
  const last = element.content.at(-1);
  if (rest.length > 0) {
    const isSame = typeof last === "object" && last.name === first;
    const inner: Element = isSame ? last : { name: first, attributes: [], content: [] };
    if (!isSame) element.content.push(inner);
    addToPath(inner, rest.join("/"), column, format);
  } else if (textNames.includes(first)) element.content.push(contentOf(column));
  else if (!first.startsWith("@"))
    element.content.push({ name: first, attributes: [], content: [contentOf(column)], hasNil: format.hasNils });
  else if (element.content.length > 0) {
    const message = `Attribute-centric column '${column.name}' must not come after a non-attribute-centric sibling in XML hierarchy in FOR XML PATH.`;
    throw new SqlError(6_852, message);
  } else element.attributes.push(attributeOf(first.slice(1), column));
}

/** The element of a row, which is there without content too; without a name only its content. */
function rowOf(row: Element): string {
  if (row.name !== "") return elementOf(row, "WHEN true");
  if (row.attributes.length > 0) {
    const message =
      "Row tag omission (empty row tag name) cannot be used with attribute-centric FOR XML serialization.";
    throw new SqlError(6_864, message);
  }
  return joined(row.content.map(nodeOf));
}

/** An element, or a text; NULL for an element whose values are all NULL. */
function nodeOf(node: string | Element): string {
  if (typeof node === "string") return node;
  const { name, attributes, content, hasNil } = node;
  const [only, ...others] = content;
  const tag = encodeName(name);
  // An empty text is content, and NULL is none.
  if (typeof only === "string" && others.length === 0 && attributes.length === 0) {
    const full = `(${escapeLiteral(`<${tag}>`)} || ${only} || ${escapeLiteral(`</${tag}>`)})`;
    return hasNil === true ? `COALESCE(${full}, ${escapeLiteral(`<${tag} xsi:nil="true"/>`)})` : full;
  }
  return elementOf(node, "WHEN e.a <> ''");
}

/**
 * An element with content, or an empty one under the condition. A subquery computes its parts once, so that the text
 * grows with the depth of the elements and not by a power of it.
 */
function elementOf({ name, attributes, content }: Element, whenEmpty: string): string {
  const tag = encodeName(name);
  const head = `${escapeLiteral(`<${tag}`)} || e.a`;
  const full = `${head} || '>' || e.c || ${escapeLiteral(`</${tag}>`)}`;
  const parts = `SELECT ${joined(attributes)} AS a, ${joined(content.map(nodeOf))} AS c OFFSET 0`;
  return `(SELECT CASE WHEN e.c <> '' THEN ${full} ${whenEmpty} THEN ${head} || '/>' END FROM (${parts}) AS e)`;
}

/** Concatenation in which NULL is an empty text. */
function joined(parts: readonly string[]): string {
  return parts.length === 0 ? "''::text" : `array_to_string(ARRAY[${parts.join(", ")}]::text[], '')`;
}

function attributeOf(name: string, column: XmlColumn): string {
  if (column.type.name === "xml")
    throw new SqlError(
      6_853,
      `Column '${column.name}': the last step in the path cannot be an attribute for a value of type xml.`,
    );
  const value = `replace(replace(${contentOf(column)}, '"', '&quot;'), E'\\n', '&#x0A;')`;
  return `(${escapeLiteral(` ${encodeName(name)}="`)} || ${value} || '"')`;
}

/** The text of a value in XML, which is NULL for NULL. */
function contentOf({ sql, type }: XmlColumn): string {
  if (type.name === "xml") return `(${sql})::text COLLATE "C"`;
  if (isBinary(type)) return `translate(encode(${sql}, 'base64'), E'\\n', '')`;
  if (type.name === "sql_variant") return escaped(`holdfast_tsql.variant_to_text(${sql}, 126) COLLATE "C"`);
  if (type.name === "uniqueidentifier") return `upper((${sql})::text)`;
  const isTemporal = ["date", "time", "datetime", "datetime2", "smalldatetime", "datetimeoffset"].includes(type.name);
  const text = isTemporal ? `(to_json(${sql}) #>> '{}')` : `((${sql})::text COLLATE "C")`;
  return escaped(text);
}

function escaped(text: string): string {
  return `replace(replace(replace(${text}, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')`;
}

/** A name of XML: other characters are `_xHHHH_`, as in SQL Server. */
function encodeName(name: string): string {
  const encode = (character: string) =>
    `_x${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}_`;
  return name.replaceAll(/[^\p{L}\p{N}_.:-]/gu, encode).replace(/^[\p{N}.-]/u, encode);
}
