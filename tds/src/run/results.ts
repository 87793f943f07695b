import type { WireFormat } from "../protocol/tds-version.ts";
import {
  type Column,
  commands,
  doneStatus,
  type ReturnValue,
  type ServerMessage,
  tokens,
  writeColMetadata,
  writeDone,
  writeMessage,
  writeReturnStatus,
  writeReturnValue,
  writeRow,
  writeTextChange,
  writeTransactionChange,
} from "../protocol/token.ts";
import type { Response } from "../session/response.ts";
import type { Value } from "../types/tsql-type.ts";
import type { SqlError } from "./sql-error.ts";

/** The tokens of one request. A DONE is written when the next token or the end shows whether more follows. */
export class Results implements StatementResults {
  #pending: { status: number; command: number; rowCount: number } | undefined;
  readonly #response: Response;
  readonly #format: WireFormat;
  readonly #isProcedure: boolean;
  readonly #inTransaction: () => boolean;
  readonly #onError: (error: SqlError) => void;

  constructor(options: {
    readonly response: Response;
    readonly format: WireFormat;
    /** Statements of an RPC end with DONEINPROC. */
    readonly isProcedure: boolean;
    readonly inTransaction: () => boolean;
    readonly onError: (error: SqlError) => void;
  }) {
    this.#onError = options.onError;
    this.#response = options.response;
    this.#format = options.format;
    this.#isProcedure = options.isProcedure;
    this.#inTransaction = options.inTransaction;
  }

  message(message: ServerMessage): void {
    this.#writePending(true);
    writeMessage(this.#response.tokens, this.#format, message);
  }

  error(error: SqlError): void {
    this.#onError(error);
    const { number, state, severity, message, line, procedure } = error;
    this.message({ number, state, severity, message, line, procedure });
  }

  columns(columns: readonly Column[]): void {
    this.#writePending(true);
    writeColMetadata(this.#response.tokens, this.#format, columns);
  }

  /** Sends a row; false if the caller must await the client's reading first. */
  row(columns: readonly Column[], row: readonly Value[]): boolean {
    writeRow(this.#response.tokens, this.#format, columns, row);
    return this.#response.flushPiece();
  }

  drained(): Promise<void> {
    return this.#response.drained();
  }

  done({ command = commands.none, rowCount, isError = false }: Done): void {
    this.#writePending(true);
    const status = (isError ? doneStatus.error : 0) | (rowCount === undefined ? 0 : doneStatus.count);
    this.#pending = { status, command, rowCount: rowCount ?? 0 };
  }

  databaseChange(current: string, previous: string, line: number): void {
    this.#writePending(true);
    writeTextChange(this.#response.tokens, "database", current, previous);
    const message = `Changed database context to '${current}'.`;
    this.message({ number: 5_701, state: 2, severity: 0, message, line });
  }

  transactionChange(type: "beginTransaction" | "commitTransaction" | "rollbackTransaction", descriptor: bigint): void {
    this.#writePending(true);
    writeTransactionChange(this.#response.tokens, type, descriptor);
  }

  returnStatus(status: number): void {
    this.#writePending(true);
    writeReturnStatus(this.#response.tokens, status);
  }

  returnValue(value: ReturnValue): void {
    this.#writePending(true);
    writeReturnValue(this.#response.tokens, this.#format, value);
  }

  /** Ends a call of an RPC; `isLast` ends the response. */
  endProcedure(isError: boolean, isLast: boolean): void {
    this.#writePending(true);
    const status = (isError ? doneStatus.error : 0) | (isLast ? 0 : doneStatus.more) | this.#transaction;
    writeDone(this.#response.tokens, this.#format, tokens.doneProc, { status });
  }

  endBatch(): void {
    if (this.#pending === undefined) this.done({});
    this.#writePending(false);
  }

  /** Ends the response of a canceled request; the confirmation of the attention is a separate message. */
  endCanceled(): void {
    this.#writePending(true);
    writeDone(this.#response.tokens, this.#format, tokens.done, { status: doneStatus.error | this.#transaction });
  }

  get #transaction(): number {
    return this.#inTransaction() ? doneStatus.inTransaction : 0;
  }

  #writePending(hasMore: boolean): void {
    if (this.#pending === undefined) return;
    const { status, command, rowCount } = this.#pending;
    this.#pending = undefined;
    const token = this.#isProcedure ? tokens.doneInProc : tokens.done;
    const full = status | (hasMore ? doneStatus.more : 0) | this.#transaction;
    writeDone(this.#response.tokens, this.#format, token, { status: full, command, rowCount });
  }
}

/** End of a statement; a row count is that of a statement that reads or changes rows. */
interface Done {
  readonly command?: number;
  readonly rowCount?: number;
  readonly isError?: boolean;
}

/** Receiver of what statements return: the client, or the INSERT ... EXEC around them. */
export interface StatementResults {
  message(message: ServerMessage): void;
  error(error: SqlError): void;
  columns(columns: readonly Column[]): void;
  /** False if the caller must await `drained` before the next row. */
  row(columns: readonly Column[], row: readonly Value[]): boolean;
  drained(): Promise<void>;
  /** End of a statement. */
  done(done: Done): void;
  /** USE: the client learns the name of the current database. */
  databaseChange(current: string, previous: string, line: number): void;
  transactionChange(type: "beginTransaction" | "commitTransaction" | "rollbackTransaction", descriptor: bigint): void;
}
