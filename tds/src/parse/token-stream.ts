import { SqlError } from "../run/sql-error.ts";
import type { Query } from "./ast.ts";
import type { Token } from "./lexer.ts";

/** Reserved words of T-SQL: identifiers only in quotes, and error 156 at an unexpected position. */
const reservedWords = new Set(
  `ADD ALL ALTER AND ANY AS ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY CASCADE CASE CHECK CHECKPOINT
  CLOSE CLUSTERED COALESCE COLLATE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS CONTAINSTABLE CONTINUE CONVERT CREATE
  CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DBCC DEALLOCATE DECLARE
  DEFAULT DELETE DENY DESC DISK DISTINCT DISTRIBUTED DOUBLE DROP DUMP ELSE END ERRLVL ESCAPE EXCEPT EXEC EXECUTE
  EXISTS EXIT EXTERNAL FETCH FILE FILLFACTOR FOR FOREIGN FREETEXT FREETEXTTABLE FROM FULL FUNCTION GOTO GRANT GROUP
  HAVING HOLDLOCK IDENTITY IDENTITY_INSERT IDENTITYCOL IF IN INDEX INNER INSERT INTERSECT INTO IS JOIN KEY KILL LEFT
  LIKE LINENO LOAD MERGE NATIONAL NOCHECK NONCLUSTERED NOT NULL NULLIF OF OFF OFFSETS ON OPEN OPENDATASOURCE
  OPENQUERY OPENROWSET OPENXML OPTION OR ORDER OUTER OVER PERCENT PIVOT PLAN PRIMARY PRINT PROC PROCEDURE
  PUBLIC RAISERROR READ READTEXT RECONFIGURE REFERENCES REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT
  ROLLBACK ROWCOUNT ROWGUIDCOL RULE SAVE SCHEMA SECURITYAUDIT SELECT SEMANTICKEYPHRASETABLE SESSION_USER SET SETUSER
  SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE TEXTSIZE THEN TO TOP TRAN TRANSACTION TRIGGER TRUNCATE
  TRY_CONVERT TSEQUAL UNION UNIQUE UNPIVOT UPDATE UPDATETEXT USE USER VALUES VARYING VIEW WAITFOR WHEN WHERE WHILE
  WITH WITHIN WRITETEXT`.split(/\s+/),
);

/** Max depth of nested expressions, queries and blocks; deeper ones are error 191. */
export const nestingMax = 250;

/** A pair of parentheses. */
interface Group {
  /** Number of tokens, including the parentheses. */
  readonly length: number;
  /** True if it contains an operator of conditions, outside of inner parentheses and of CASE. */
  readonly hasComparison: boolean;
}

const comparisonTokens = "= <> != < > <= >= !< !> AND OR NOT IS IN LIKE BETWEEN EXISTS UPDATE".split(" ");

/** Finds all groups by the position of their first token, in one pass, so that nesting does not multiply the cost. */
function groupsOf(tokens: readonly Token[]): Map<number, Group> {
  const groups = new Map<number, Group>();
  const open: { start: number; hasComparison: boolean; cases: number }[] = [];
  for (const [index, { kind, keyword }] of tokens.entries()) {
    const inner = open.at(-1);
    if (kind === "symbol" && keyword === "(") open.push({ start: index, hasComparison: false, cases: 0 });
    else if (inner === undefined || (kind !== "symbol" && kind !== "word")) continue;
    else if (kind === "symbol" && keyword === ")") {
      open.pop();
      groups.set(inner.start, { length: index - inner.start + 1, hasComparison: inner.hasComparison });
    } else if (keyword === "CASE") inner.cases += 1;
    else if (keyword === "END") inner.cases = Math.max(0, inner.cases - 1);
    else if (inner.cases === 0 && comparisonTokens.includes(keyword)) inner.hasComparison = true;
  }
  return groups;
}

/** A token as it can be parsed again, also with another QUOTED_IDENTIFIER. */
function tokenText({ kind, text, isNational }: Token): string {
  switch (kind) {
    case "quoted":
      return `[${text.replaceAll("]", "]]")}]`;
    case "string":
      return `${isNational ? "N" : ""}'${text.replaceAll("'", "''")}'`;
    case "binary":
      return `0x${text}`;
    case "money":
      return `$${text}`;
    default:
      return text;
  }
}

/** Reads the tokens of a batch one after another, and parses what all statements share: names, lists, parentheses. */
export class TokenStream {
  #at = 0;
  #depth = 0;
  #groups: Map<number, Group> | undefined;
  readonly #tokens: readonly Token[];
  /** Parser of queries, passed in because expressions contain queries and queries contain expressions. */
  readonly query: (stream: TokenStream) => Query;
  /** Called with the error of a statement, after which the next one is parsed; without it the error is thrown. */
  onFault: ((error: SqlError) => void) | undefined;

  constructor(tokens: readonly Token[], query: (stream: TokenStream) => Query) {
    this.#tokens = tokens;
    this.query = query;
  }

  get current(): Token {
    const token = this.#tokens[this.#at] ?? this.#tokens.at(-1);
    if (token === undefined) throw new Error("a batch has no tokens");
    return token;
  }

  /** A token after the current one, or before it by a negative distance. */
  peek(distance: number): Token {
    return this.#tokens[this.#at + distance] ?? this.current;
  }

  /** Number of tokens that have been read. */
  get position(): number {
    return this.#at;
  }

  /** Text of the tokens from a position to the current one, with identifiers in brackets. */
  textFrom(position: number): string {
    return this.#tokens.slice(position, this.#at).map(tokenText).join(" ");
  }

  get isAtEnd(): boolean {
    return this.current.kind === "end";
  }

  next(): Token {
    const token = this.current;
    this.#at += 1;
    return token;
  }

  /** True if these keywords or symbols follow. */
  is(...keywords: readonly string[]): boolean {
    return keywords.every((keyword, distance) => {
      const token = this.peek(distance);
      return (token.kind === "word" || token.kind === "symbol") && token.keyword === keyword;
    });
  }

  accept(...keywords: readonly string[]): boolean {
    if (!this.is(...keywords)) return false;
    this.#at += keywords.length;
    return true;
  }

  expect(...keywords: readonly string[]): void {
    for (const keyword of keywords) if (!this.accept(keyword)) throw this.unexpected();
  }

  /** Syntax error at the current token: 156 near a reserved word, otherwise 102. */
  unexpected(): SqlError {
    const { kind, text, line, keyword } = this.current;
    const near = kind === "end" ? (this.#tokens[this.#at - 1]?.text ?? "") : text;
    if (kind === "word" && reservedWords.has(keyword))
      return new SqlError(156, `Incorrect syntax near the keyword '${near}'.`, { severity: 15, line });
    return new SqlError(102, `Incorrect syntax near '${near.slice(0, 128)}'.`, { severity: 15, line });
  }

  /** The group that begins at the current token; undefined without a closing parenthesis. */
  group(): Group | undefined {
    this.#groups ??= groupsOf(this.#tokens);
    return this.#groups.get(this.#at);
  }

  /** Parses with the depth raised by one; error 191 beyond `nestingMax`. */
  nested<T>(parse: () => T): T {
    this.#depth += 1;
    if (this.#depth > nestingMax) {
      const { line } = this.current;
      throw new SqlError(
        191,
        `Some part of the SQL statement is nested deeper than ${nestingMax} levels. Simplify the statement.`,
        {
          severity: 15,
          line,
        },
      );
    }
    try {
      return parse();
    } finally {
      this.#depth -= 1;
    }
  }

  get isIdentifier(): boolean {
    const { kind, keyword } = this.current;
    return kind === "quoted" || (kind === "word" && !reservedWords.has(keyword));
  }

  identifier(): string {
    if (!this.isIdentifier) throw this.unexpected();
    const { text, line } = this.next();
    if (text.length > 128) {
      const cut = text.slice(0, 128);
      const message = `The name that begins with '${cut}' is longer than 128 characters.`;
      throw new SqlError(103, message, { severity: 15, line });
    }
    return text;
  }

  /** A name of up to four parts; omitted parts, as in `db..t`, are empty. */
  path(): string[] {
    // `..t` and `.t` are tables of the current database.
    const parts = this.is(".") ? [""] : [this.identifier()];
    while (this.accept(".")) parts.push(this.is(".") ? "" : this.anyIdentifier());
    return parts;
  }

  /** Parses a part of a path; after a dot it may be a reserved word. */
  anyIdentifier(): string {
    const { kind } = this.current;
    if (kind !== "word" && kind !== "quoted") throw this.unexpected();
    return this.next().text;
  }

  variable(): string {
    if (this.current.kind !== "variable") throw this.unexpected();
    return this.next().text;
  }

  list<T>(parse: () => T): T[] {
    const items = [parse()];
    while (this.accept(",")) items.push(parse());
    return items;
  }

  parenthesized<T>(parse: () => T): T {
    this.expect("(");
    const value = this.nested(parse);
    this.expect(")");
    return value;
  }

  identifierOrString(): string {
    return this.current.kind === "string" ? this.next().text : this.identifier();
  }

  /** Parses an integer with its sign. */
  integer(): string {
    const sign = this.accept("-") ? "-" : "";
    if (this.current.kind !== "number" || !/^\d{1,19}$/.test(this.current.text)) throw this.unexpected();
    return sign + this.next().text;
  }

  /** Skips a parenthesis and all that is in it. */
  skipParentheses(): void {
    let depth = 0;
    do {
      if (this.isAtEnd) throw this.unexpected();
      const { kind, text } = this.next();
      if (kind === "symbol" && text === "(") depth += 1;
      if (kind === "symbol" && text === ")") depth -= 1;
    } while (depth > 0);
  }

  identifierList(): string[] {
    return this.parenthesized(() => this.list(() => this.identifier()));
  }
}
