import { quoteName } from "../bind/object-name.ts";
import type { IsolationLevel } from "../protocol/transaction-manager-request.ts";
import type { Backend } from "./backend.ts";
import type { StatementResults } from "./results.ts";
import { SqlError } from "./sql-error.ts";

/** Isolation levels of PostgreSQL: read uncommitted is read committed there, and snapshot is repeatable read. */
const levels: Readonly<Record<IsolationLevel, string>> = {
  "read uncommitted": "READ COMMITTED",
  "read committed": "READ COMMITTED",
  "repeatable read": "REPEATABLE READ",
  snapshot: "REPEATABLE READ",
  serializable: "SERIALIZABLE",
};

/** A savepoint before each statement, so that a failed one does not end the transaction. */
const statementSavepoint = quoteName(":statement");
const nestingMax = 32_767;
/** Error of a BEGIN past `nestingMax`. SQL Server has no such limit, so the number is from those of users. */
const nestedTooDeeply = 50_001;

/** The transaction of a session. Nested BEGINs only count; the outermost COMMIT commits. */
export class Transaction {
  #count = 0;
  #descriptor = 0n;
  #name: string | undefined;
  #savepoints: string[] = [];
  #hasStatementSavepoint = false;
  /** Only ROLLBACK is possible, as XACT_STATE() -1 reports. */
  isDoomed = false;
  isolation: IsolationLevel = "read committed";
  readonly #backend: Backend;
  readonly #afterRollback: () => Promise<void>;

  /** `afterRollback` sets the settings of the session again that a rollback has undone. */
  constructor(backend: Backend, afterRollback: () => Promise<void> = () => Promise.resolve()) {
    this.#backend = backend;
    this.#afterRollback = afterRollback;
  }

  /** @@TRANCOUNT. */
  get count(): number {
    return this.#count;
  }

  async begin(results: StatementResults | undefined, name?: string, isolation = this.isolation): Promise<void> {
    if (this.#count >= nestingMax) {
      const message = `BEGIN TRANSACTION exceeds the nesting limit of ${nestingMax}; commit or roll back first.`;
      throw new SqlError(nestedTooDeeply, message);
    }
    this.#count += 1;
    if (this.#count > 1) return;
    this.#name = name;
    this.#descriptor += 1n;
    this.#savepoints = [];
    this.isDoomed = false;
    await this.#backend.script(`BEGIN ISOLATION LEVEL ${levels[isolation]}`);
    results?.transactionChange("beginTransaction", this.#descriptor);
  }

  /** Errors 3902 without a transaction and 3930 in a doomed one. */
  async commit(results: StatementResults | undefined): Promise<void> {
    if (this.#count === 0)
      throw new SqlError(3902, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.");
    if (this.isDoomed || this.#backend.hasFailed) throw doomedTransactionError();
    if (this.#count > 1) {
      this.#count -= 1;
      return;
    }
    this.#count = 0;
    this.#hasStatementSavepoint = false;
    try {
      await this.#backend.script("COMMIT");
    } catch (error) {
      results?.transactionChange("rollbackTransaction", this.#descriptor);
      await this.#afterRollback();
      throw error;
    }
    results?.transactionChange("commitTransaction", this.#descriptor);
  }

  /** Rolls back to the savepoint of that name, or the complete transaction. */
  async rollback(results: StatementResults | undefined, name?: string): Promise<void> {
    if (this.#count === 0)
      throw new SqlError(3903, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.");
    const folded = name?.toLowerCase();
    if (folded !== undefined && folded !== this.#name?.toLowerCase()) {
      const at = this.#savepoints.lastIndexOf(folded);
      if (at === -1) throw new SqlError(6401, `There is no transaction or savepoint named ${name}.`);
      if (this.isDoomed) throw doomedTransactionError();
      this.#savepoints = this.#savepoints.slice(0, at + 1);
      this.#hasStatementSavepoint = false;
      await this.#backend.script(`ROLLBACK TO SAVEPOINT ${quoteName(folded)}`);
      await this.#afterRollback();
      return;
    }
    this.#count = 0;
    this.isDoomed = false;
    this.#hasStatementSavepoint = false;
    await this.#backend.script("ROLLBACK");
    results?.transactionChange("rollbackTransaction", this.#descriptor);
    await this.#afterRollback();
  }

  async save(name: string): Promise<void> {
    if (this.#count === 0)
      throw new SqlError(628, "Cannot issue SAVE TRANSACTION when there is no active transaction.");
    const folded = name.toLowerCase();
    this.#savepoints.push(folded);
    const release = this.#hasStatementSavepoint ? `RELEASE SAVEPOINT ${statementSavepoint}; ` : "";
    this.#hasStatementSavepoint = false;
    await this.#backend.script(`${release}SAVEPOINT ${quoteName(folded)}`);
  }

  /** Runs one statement behind a savepoint: a failure rolls back the statement, and the transaction continues. */
  async withStatementSavepoint<T>(run: () => Promise<T>): Promise<T> {
    if (this.#count === 0) return run();
    const release = this.#hasStatementSavepoint ? `RELEASE SAVEPOINT ${statementSavepoint}; ` : "";
    await this.#backend.script(`${release}SAVEPOINT ${statementSavepoint}`);
    this.#hasStatementSavepoint = true;
    try {
      return await run();
    } catch (error) {
      if (this.#backend.inTransaction) await this.#backend.script(`ROLLBACK TO SAVEPOINT ${statementSavepoint}`);
      throw error;
    }
  }

  /** Runs several statements of PostgreSQL of which all or none take effect, also without a transaction. */
  async asOneStatement<T>(run: () => Promise<T>): Promise<T> {
    if (this.#count > 0) return this.withStatementSavepoint(run);
    await this.#backend.script("BEGIN");
    try {
      const value = await run();
      await this.#backend.script("COMMIT");
      return value;
    } catch (error) {
      if (this.#backend.inTransaction) await this.#backend.script("ROLLBACK");
      throw error;
    }
  }
}

export function doomedTransactionError(): SqlError {
  return new SqlError(3930, "The current transaction cannot be committed and cannot write. Roll back the transaction.");
}
