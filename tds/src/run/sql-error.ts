/** An error of a statement, with the number, severity and state of the ERROR token and of ERROR_NUMBER(). */
export class SqlError extends Error {
  override readonly name = "SqlError";
  readonly number: number;
  readonly severity: number;
  readonly state: number;
  /** Line of the batch, from 1; 0 if the error has none. */
  line: number;
  procedure: string | undefined;
  /** Name in the table of features of the one that the error refuses (`parse/features.ts`). */
  readonly feature: string | undefined;
  /** True for THROW, which ends the batch. */
  isThrown = false;
  /** True for errors of triggers, which roll back the transaction. */
  endsTransaction = false;

  constructor(
    number: number,
    message: string,
    options: { severity?: number; state?: number; line?: number; feature?: string } = {},
  ) {
    super(message);
    this.number = number;
    this.severity = options.severity ?? 16;
    this.state = options.state ?? 1;
    this.line = options.line ?? 0;
    this.feature = options.feature;
  }
}
