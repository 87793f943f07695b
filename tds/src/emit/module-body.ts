import { quoteName } from "../bind/object-name.ts";
import { Scope } from "../bind/scope.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import type { Dml, Expression, ModuleDefinition, Select, Statement, StatementBody } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { assignmentType, castType } from "../types/backend-type.ts";
import { isCharacter, isInteger, type TsqlType } from "../types/tsql-type.ts";
import type { EmitContext, ModuleNames } from "./context.ts";
import { castTo } from "./conversions.ts";
import { emitDelete, emitInsert, emitMerge, emitUpdate } from "./dml.ts";
import { emitExpression, emitPredicate } from "./expressions.ts";
import { emitQuery } from "./queries.ts";

/** Codes of what a trigger reports to the front end: a message, an error that ends the statement, a rollback. */
export const moduleStates = { message: "TS000", error: "TS001", rollback: "TS002" } as const;

const int: TsqlType = { name: "int" };
const nvarcharMax: TsqlType = { name: "nvarchar", length: "max" };
const rowCount = quoteName("@@rowcount");
/** Label of the block of the statements of a trigger, which RETURN leaves. */
export const bodyLabel = quoteName(":body");

/** Statements of T-SQL as PL/pgSQL, with the declarations that they need. */
export class ModuleBody {
  readonly declarations: string[] = [];
  /** Variables by their names in lower case; the names in PL/pgSQL are the quoted ones. */
  readonly #variables = new Map<string, { sql: string; type: TsqlType }>();
  readonly tables = new Map<string, TableDefinition>();
  #records = 0;
  readonly #definition: ModuleDefinition;
  readonly #newContext: (names: ModuleNames) => EmitContext;
  readonly #returns: (body: ModuleBody, expression: Expression | undefined) => string;
  /** Tables such as `inserted`, by their names. */
  rowSets: ReadonlyMap<string, TableDefinition> = new Map();
  updated: ((column: string) => string) | undefined;

  constructor(options: {
    readonly definition: ModuleDefinition;
    readonly newContext: (names: ModuleNames) => EmitContext;
    /** Statements for a RETURN. */
    readonly returns: (body: ModuleBody, expression: Expression | undefined) => string;
  }) {
    this.#definition = options.definition;
    this.#newContext = options.newContext;
    this.#returns = options.returns;
    this.#variables.set("@@rowcount", { sql: rowCount, type: int });
    this.#variables.set("@@error", { sql: "0", type: int });
    this.declarations.push(`${rowCount} int4 := 0;`);
  }

  declare(name: string, type: TsqlType, value = ""): void {
    const folded = name.toLowerCase();
    if (this.#variables.has(folded))
      throw new SqlError(134, `The variable name '${name}' has already been declared.`, { severity: 15 });
    this.#variables.set(folded, { sql: quoteName(folded), type });
    this.declarations.push(`${quoteName(folded)} ${this.#variableType(type)}${value};`);
  }

  /** Type of a variable in PL/pgSQL. All texts have one collation, so that comparisons of them are defined. */
  #variableType(type: TsqlType): string {
    const isText = isCharacter(type) && type.name !== "xml";
    return `${assignmentType(type)}${isText ? ` ${this.context().collate(type)}` : ""}`;
  }

  /** A context for one statement; after it, `check` finds parts that need the front end. */
  context(): EmitContext {
    const context = this.#newContext({
      variables: this.#variables,
      tables: this.tables,
      ...(this.updated && { updated: this.updated }),
    });
    for (const [name, table] of this.rowSets) context.common.set(name, table);
    return context;
  }

  expression(expression: Expression, type: TsqlType): string {
    return castTo(emitExpression(expression, new Scope(), this.context()), type).sql;
  }

  /** Declares the variables of all statements first: in T-SQL their scope is the complete module. */
  declareAll(statements: readonly Statement[]): void {
    for (const { body } of statements) {
      switch (body.kind) {
        case "declare":
          for (const { name, type } of body.variables) this.declare(name, type);
          break;
        case "block":
          this.declareAll(body.statements);
          break;
        case "if":
          this.declareAll([body.consequent, ...(body.otherwise === undefined ? [] : [body.otherwise])]);
          break;
        case "while":
          this.declareAll([body.body]);
          break;
        default:
      }
    }
  }

  statements(statements: readonly Statement[]): string {
    return statements.map((statement) => this.#statement(statement)).join("\n");
  }

  #statement({ body, line }: Statement): string {
    try {
      return this.#text(body, line);
    } catch (error) {
      if (error instanceof SqlError && error.line === 0) error.line = line;
      throw error;
    }
  }

  #text(body: StatementBody, line: number): string {
    switch (body.kind) {
      case "declare":
        return body.variables
          .map(({ name, type, value }) =>
            value === undefined ? "" : `${quoteName(name.toLowerCase())} := ${this.expression(value, type)};`,
          )
          .join("\n");
      case "set":
        return this.#assign(body.name, body.expression);
      case "query":
      case "insert":
      case "update":
      case "delete":
      case "merge":
        return this.#change(body, line);
      case "if": {
        const condition = emitPredicate(body.condition, new Scope(), this.context());
        const otherwise = body.otherwise === undefined ? "" : `ELSE\n${this.#block(body.otherwise)}\n`;
        return `IF ${condition} THEN\n${this.#block(body.consequent)}\n${otherwise}END IF;`;
      }
      case "while": {
        const condition = emitPredicate(body.condition, new Scope(), this.context());
        return `WHILE ${condition} LOOP\n${this.#block(body.body)}\nEND LOOP;`;
      }
      case "block":
        return this.statements(body.statements);
      case "break":
        return "EXIT;";
      case "continue":
        return "CONTINUE;";
      case "return":
        return this.#returns(this, body.expression);
      default:
        return this.#isTrigger ? this.#triggerStatement(body, line) : this.#refuseSideEffect(body, line);
    }
  }

  get #isTrigger(): boolean {
    return this.#definition.kind === "trigger";
  }

  /** The statement of a branch or loop; PL/pgSQL needs at least one. */
  #block(statement: Statement): string {
    const text = this.#statement(statement);
    return text === "" ? "NULL;" : text;
  }

  #assign(name: string, expression: Expression): string {
    const variable = this.#variables.get(name.toLowerCase());
    if (variable === undefined || name.startsWith("@@"))
      throw new SqlError(137, `Must declare the scalar variable "${name}".`, { severity: 15 });
    return `${variable.sql} := ${this.expression(expression, variable.type)};`;
  }

  #change(body: Dml, line: number): string {
    if (body.kind === "query") return this.#assignRows(body, line);
    if (body.output !== undefined)
      throw refuse("statements in functions and triggers", line, "OUTPUT in a function or trigger");
    if (!this.#isTrigger && body.target.kind !== "tableVariable") throw this.#sideEffect(body.kind.toUpperCase());
    const context = this.context();
    const emitted = () => {
      switch (body.kind) {
        case "insert":
          if (body.source.kind === "execute" || body.source.kind === "executeText")
            throw refuse("statements in functions and triggers", line, "INSERT ... EXEC in a function or trigger");
          return emitInsert(body, context, false);
        case "update":
          if (body.assignments.some(({ variable }) => variable !== undefined))
            throw refuse("statements in functions and triggers", line, "SET @variable in UPDATE");
          return emitUpdate(body, context);
        case "delete":
          return emitDelete(body, context);
        case "merge":
          return emitMerge(body, context);
      }
    };
    return `${emitted().sql};\nGET DIAGNOSTICS ${rowCount} = ROW_COUNT;`;
  }

  /** `SELECT @a = x`: variables get the values of the last row, and are unchanged without rows. */
  #assignRows(query: Extract<Dml, { kind: "query" }>, line: number): string {
    const select = query.body.kind === "select" ? query.body : undefined;
    if (select === undefined || select.items.some(({ variable }) => variable === undefined)) {
      if (this.#isTrigger) throw refuse("statements in functions and triggers", line, "a result set of a trigger");
      throw new SqlError(444, "Select statements included within a function cannot return data to a client.", {
        line,
      });
    }
    if (select.from.length === 0 && select.where === undefined)
      return select.items.map(({ variable, expression }) => this.#assign(variable ?? "", expression)).join("\n");
    this.#records += 1;
    const record = quoteName(`:row${this.#records}`);
    this.declarations.push(`${record} record;`);
    const { sql } = emitQuery(this.#castItems(query, select), this.context());
    const columns = select.items.map((_, index) => `c${index}`);
    const assignments = select.items.map(({ variable = "" }, index) => {
      return `${quoteName(variable.toLowerCase())} := ${record}.c${index};`;
    });
    const text = `FOR ${record} IN SELECT * FROM (${sql}) AS q (${columns.join(", ")}) LOOP`;
    const count = `${rowCount} := ${rowCount} + 1;`;
    return `${rowCount} := 0;\n${text}\n${assignments.join("\n")}\n${count}\nEND LOOP;`;
  }

  #castItems(query: Extract<Dml, { kind: "query" }>, select: Select): Extract<Dml, { kind: "query" }> {
    const items = select.items.map(({ variable = "", expression }) => {
      const type = this.#variables.get(variable.toLowerCase())?.type;
      if (type === undefined)
        throw new SqlError(137, `Must declare the scalar variable "${variable}".`, { severity: 15 });
      const cast: Expression = { kind: "cast", operand: expression, type, isTry: false, style: undefined };
      return { expression: cast, alias: undefined, variable: undefined };
    });
    return { ...query, body: { ...select, items } };
  }

  /** Statements that triggers have and functions lack. */
  #triggerStatement(body: StatementBody, line: number): string {
    switch (body.kind) {
      case "setOption":
        if (body.options.every((option) => ["NOCOUNT", "XACT_ABORT", "ANSI_NULLS"].includes(option))) return "";
        throw refuse("statements in functions and triggers", line, `SET ${body.options.join(", ")} in a trigger`);
      case "print":
        return raise("NOTICE", moduleStates.message, this.expression(body.expression, nvarcharMax), "'0,0,1'");
      case "raiserror":
        return this.#raise(body.arguments, line);
      case "throw": {
        const [number, message, state] = body.arguments;
        if (number === undefined || message === undefined || state === undefined)
          throw refuse("statements in functions and triggers", line, "THROW without arguments in a trigger");
        const detail = `concat_ws(',', ${this.expression(number, int)}, 16, ${this.expression(state, int)})`;
        return raise("EXCEPTION", moduleStates.error, this.expression(message, nvarcharMax), detail);
      }
      case "rollback": {
        const message = "'The transaction ended in the trigger. The batch has been aborted.'";
        return raise("EXCEPTION", moduleStates.rollback, message, "'3609,16,1'");
      }
      default:
        throw refuse("statements in functions and triggers", line, `${statementName(body)} in a trigger`);
    }
  }

  /** RAISERROR does not end the statement: its error is sent to the client beside the result. */
  #raise(list: readonly Expression[], line: number): string {
    const [format, severity, state, ...parameters] = list;
    if (format === undefined || severity === undefined || state === undefined)
      throw new SqlError(102, "Incorrect syntax near 'RAISERROR'.", { severity: 15, line });
    if (format.kind === "literal" && isInteger(format.type))
      throw refuse("statements in functions and triggers", line, "RAISERROR with a number in a trigger");
    const detail = `concat_ws(',', 50000, ${this.expression(severity, int)}, ${this.expression(state, int)})`;
    if (parameters.length === 0)
      return raise("NOTICE", moduleStates.message, this.expression(format, nvarcharMax), detail);
    if (format.kind !== "literal")
      throw refuse("statements in functions and triggers", line, "RAISERROR with a variable format in a trigger");
    const template = (format.value ?? "").replaceAll(/%[diosuxX]/g, "%s");
    const values = parameters.map((parameter) => this.expression(parameter, nvarcharMax));
    const message = `format(${[escapeLiteral(template), ...values].join(", ")})`;
    return raise("NOTICE", moduleStates.message, message, detail);
  }

  #refuseSideEffect(body: StatementBody, line: number): never {
    if (body.kind === "try" || body.kind === "declareTable")
      throw refuse("statements in functions and triggers", line, `${statementName(body)} in a function`);
    if (body.kind === "execute" || body.kind === "executeText")
      throw new SqlError(557, "Only functions can be executed from within a function.", { line });
    throw this.#sideEffect(statementName(body));
  }

  #sideEffect(name: string): SqlError {
    return new SqlError(443, `Invalid use of a side-effecting operator '${name}' within a function.`);
  }
}

function statementName({ kind }: StatementBody): string {
  return kind.replaceAll(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase();
}

function raise(level: "NOTICE" | "EXCEPTION", state: string, message: string, detail: string): string {
  const text = `COALESCE((${message})::text, '')`;
  return `RAISE ${level} USING ERRCODE = '${state}', MESSAGE = ${text}, DETAIL = ${detail};`;
}

/** A parameter in PL/pgSQL: a variable that begins with the value of the argument. */
export function declareParameters(body: ModuleBody, parameters: readonly { name: string; type: TsqlType }[]): void {
  for (const [index, { name, type }] of parameters.entries()) body.declare(name, type, ` := $${index + 1}`);
}

/** Types of the parameters for CREATE FUNCTION. */
export function parameterTypes(parameters: readonly { readonly type: TsqlType }[]): string {
  return parameters.map(({ type }) => plainType(type)).join(", ");
}

/** Type of an argument or result: PostgreSQL ignores their lengths. */
export function plainType(type: TsqlType): string {
  return assignmentType(type) === "numeric" ? "numeric" : castType({ name: type.name, length: "max" });
}
