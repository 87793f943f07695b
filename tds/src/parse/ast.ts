import type { TsqlType, Value } from "../types/tsql-type.ts";

/** Parts of a name from left to right, such as database, schema and object, in the client's spelling. */
export type Path = readonly string[];

export type Expression =
  | { readonly kind: "literal"; readonly type: TsqlType; readonly value: Value }
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "column"; readonly path: Path; readonly line: number }
  | { readonly kind: "star"; readonly path: Path }
  | { readonly kind: "unary"; readonly operator: string; readonly operand: Expression }
  | { readonly kind: "binary"; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | { readonly kind: "call"; readonly call: Call }
  | {
      readonly kind: "case";
      readonly operand: Expression | undefined;
      readonly whens: readonly { readonly when: Expression | Predicate; readonly consequent: Expression }[];
      readonly otherwise: Expression | undefined;
    }
  | {
      readonly kind: "cast";
      readonly operand: Expression;
      readonly type: TsqlType;
      readonly isTry: boolean;
      readonly style: Expression | undefined;
    }
  | { readonly kind: "subquery"; readonly query: Query }
  | { readonly kind: "collate"; readonly operand: Expression; readonly collation: string | undefined }
  | { readonly kind: "default" }
  /** NEXT VALUE FOR a sequence. */
  | { readonly kind: "nextValue"; readonly path: Path; readonly line: number };

export interface Call {
  readonly path: Path;
  readonly arguments: readonly Expression[];
  readonly isDistinct: boolean;
  readonly over: Window | undefined;
  readonly withinGroup: readonly OrderItem[] | undefined;
  /** Condition of IIF; undefined for other functions. */
  readonly condition?: Predicate;
  readonly line: number;
}

export interface Window {
  readonly partitionBy: readonly Expression[];
  readonly orderBy: readonly OrderItem[];
  /** ROWS or RANGE and its bounds, in upper case. */
  readonly frame: string | undefined;
}

/** Conditions; T-SQL has no boolean values, so they are not expressions. */
export type Predicate =
  | { readonly kind: "compare"; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | {
      readonly kind: "quantified";
      readonly operator: string;
      readonly left: Expression;
      readonly quantifier: "ALL" | "ANY";
      readonly query: Query;
    }
  | { readonly kind: "and" | "or"; readonly left: Predicate; readonly right: Predicate }
  | { readonly kind: "not"; readonly operand: Predicate }
  | { readonly kind: "isNull"; readonly operand: Expression; readonly isNegated: boolean }
  | {
      readonly kind: "between";
      readonly operand: Expression;
      readonly low: Expression;
      readonly high: Expression;
      readonly isNegated: boolean;
    }
  | {
      readonly kind: "in";
      readonly operand: Expression;
      readonly list: readonly Expression[] | Query;
      readonly isNegated: boolean;
    }
  | {
      readonly kind: "like";
      readonly operand: Expression;
      readonly pattern: Expression;
      readonly escape: Expression | undefined;
      readonly isNegated: boolean;
    }
  | { readonly kind: "exists"; readonly query: Query }
  /** UPDATE(column) in a trigger. */
  | { readonly kind: "updated"; readonly column: string };

export interface OrderItem {
  readonly expression: Expression;
  readonly isDescending: boolean;
}

export interface Query {
  readonly kind: "query";
  readonly with: readonly CommonTable[];
  readonly body: QueryBody;
  readonly orderBy: readonly OrderItem[];
  readonly offset: Expression | undefined;
  readonly fetch: Expression | undefined;
  /** FOR JSON or FOR XML. */
  readonly format?: RowFormat;
}

/** Text in which a query returns its rows. */
export type RowFormat =
  | {
      readonly kind: "json";
      /** True for AUTO, in which tables make objects; dots of names make them in PATH. */
      readonly isAuto: boolean;
      readonly root: string | undefined;
      readonly includesNulls: boolean;
      readonly hasArray: boolean;
    }
  | {
      readonly kind: "xml";
      readonly mode: "raw" | "path" | "auto";
      readonly isAuto: boolean;
      /** Name of the element of a row; empty for none. */
      readonly element: string;
      readonly root: string | undefined;
      /** False if columns are attributes. */
      readonly hasElements: boolean;
      /** True if a NULL is an element with `xsi:nil`. */
      readonly hasNils: boolean;
      /** True if the result is of type xml. */
      readonly isTyped: boolean;
    };

export interface CommonTable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly query: Query;
}

export type QueryBody =
  | Select
  | {
      readonly kind: "setOperation";
      readonly operator: "UNION" | "UNION ALL" | "EXCEPT" | "INTERSECT";
      readonly left: QueryBody;
      readonly right: QueryBody;
    }
  | { readonly kind: "nested"; readonly query: Query };

export interface Top {
  readonly count: Expression;
  readonly isPercent: boolean;
  readonly withTies: boolean;
}

export interface Select {
  readonly kind: "select";
  readonly isDistinct: boolean;
  readonly top: Top | undefined;
  readonly items: readonly SelectItem[];
  readonly into: Path | undefined;
  readonly from: readonly TableSource[];
  readonly where: Predicate | undefined;
  readonly groupBy: readonly Expression[];
  readonly having: Predicate | undefined;
}

export interface SelectItem {
  readonly expression: Expression;
  readonly alias: string | undefined;
  /** `@variable = expression`, with its operator. */
  readonly variable: string | undefined;
}

export type TableSource =
  | { readonly kind: "table"; readonly path: Path; readonly alias: string | undefined; readonly line: number }
  | { readonly kind: "tableVariable"; readonly name: string; readonly alias: string | undefined }
  | {
      readonly kind: "derived";
      readonly query: Query;
      readonly alias: string;
      readonly columns: readonly string[];
    }
  | {
      readonly kind: "values";
      readonly rows: readonly (readonly Expression[])[];
      readonly alias: string;
      readonly columns: readonly string[];
    }
  | {
      readonly kind: "function";
      readonly call: Call;
      readonly alias: string | undefined;
      readonly columns: readonly string[];
    }
  | {
      readonly kind: "join";
      readonly type: "INNER" | "LEFT" | "RIGHT" | "FULL" | "CROSS" | "CROSS APPLY" | "OUTER APPLY";
      readonly left: TableSource;
      readonly right: TableSource;
      readonly on: Predicate | undefined;
    };

export interface Output {
  readonly items: readonly SelectItem[];
  readonly into: { readonly target: Target; readonly columns: readonly string[] } | undefined;
}

export type Target = { readonly kind: "table"; readonly path: Path; readonly line: number } | TargetVariable;
interface TargetVariable {
  readonly kind: "tableVariable";
  readonly name: string;
}

export interface Assignment {
  /** Absent for `@variable = expression`. */
  readonly column?: string;
  /** Variable that gets the new value of the column, or the value of the expression in the last changed row. */
  readonly variable?: string;
  readonly expression: Expression;
}

export interface Insert {
  readonly kind: "insert";
  readonly with: readonly CommonTable[];
  readonly target: Target;
  readonly columns: readonly string[];
  readonly source:
    | { readonly kind: "values"; readonly rows: readonly (readonly Expression[])[] }
    | { readonly kind: "default" }
    | ExecuteStatement
    | Query;
  readonly output: Output | undefined;
}

export interface Update {
  readonly kind: "update";
  readonly with: readonly CommonTable[];
  readonly top: Top | undefined;
  readonly target: Target;
  readonly assignments: readonly Assignment[];
  readonly from: readonly TableSource[];
  readonly where: Predicate | undefined;
  readonly output: Output | undefined;
}

export interface Delete {
  readonly kind: "delete";
  readonly with: readonly CommonTable[];
  readonly top: Top | undefined;
  readonly target: Target;
  readonly from: readonly TableSource[];
  readonly where: Predicate | undefined;
  readonly output: Output | undefined;
}

export interface Merge {
  readonly kind: "merge";
  readonly with: readonly CommonTable[];
  readonly target: Target;
  readonly alias: string | undefined;
  readonly source: TableSource;
  readonly on: Predicate;
  readonly clauses: readonly MergeClause[];
  readonly output: Output | undefined;
}

export interface MergeClause {
  readonly when: "matched" | "notMatchedByTarget" | "notMatchedBySource";
  readonly condition: Predicate | undefined;
  readonly action:
    | { readonly kind: "delete" }
    | { readonly kind: "update"; readonly assignments: readonly Assignment[] }
    | { readonly kind: "insert"; readonly columns: readonly string[]; readonly values: readonly Expression[] };
}

export type Dml = Query | Insert | Update | Delete | Merge;

export interface ColumnDefinition {
  readonly name: string;
  /** Absent for computed columns. */
  readonly type: TsqlType | undefined;
  readonly isNullable: boolean | undefined;
  readonly identity: { readonly seed: string; readonly increment: string } | undefined;
  readonly default: { readonly name: string | undefined; readonly expression: Expression } | undefined;
  readonly computed: Expression | undefined;
  readonly constraints: readonly TableConstraint[];
}

export type TableConstraint = { readonly name: string | undefined } & (
  | { readonly kind: "primaryKey" | "unique"; readonly columns: readonly string[] }
  | {
      readonly kind: "foreignKey";
      readonly columns: readonly string[];
      readonly references: Path;
      readonly referencedColumns: readonly string[];
      readonly onDelete: string | undefined;
      readonly onUpdate: string | undefined;
    }
  | { readonly kind: "check"; readonly predicate: Predicate }
  | { readonly kind: "default"; readonly column: string; readonly expression: Expression }
);

/** GRANT or REVOKE of permissions on an object. */
export interface Grant {
  readonly kind: "grant";
  readonly verb: "GRANT" | "REVOKE";
  readonly permissions: readonly {
    readonly name: "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "REFERENCES" | "EXECUTE";
    readonly columns: readonly string[];
  }[];
  readonly path: Path;
  readonly principals: readonly string[];
  /** WITH GRANT OPTION, or GRANT OPTION FOR of a REVOKE. */
  readonly hasOption: boolean;
  readonly cascades: boolean;
}

export type Ddl =
  | Grant
  | {
      readonly kind: "createTable";
      readonly path: Path;
      readonly columns: readonly ColumnDefinition[];
      readonly constraints: readonly TableConstraint[];
    }
  | {
      readonly kind: "alterTable";
      readonly path: Path;
      readonly action:
        | {
            readonly kind: "add";
            readonly columns: readonly ColumnDefinition[];
            readonly constraints: readonly TableConstraint[];
          }
        | {
            readonly kind: "dropColumn" | "dropConstraint";
            readonly names: readonly string[];
            readonly ifExists: boolean;
          }
        | { readonly kind: "alterColumn"; readonly column: ColumnDefinition };
    }
  | {
      readonly kind: "createIndex";
      readonly name: string;
      readonly isUnique: boolean;
      readonly table: Path;
      readonly columns: readonly { readonly name: string; readonly isDescending: boolean }[];
      readonly include: readonly string[];
      readonly where: Predicate | undefined;
    }
  | { readonly kind: "createView"; readonly path: Path; readonly columns: readonly string[]; readonly query: Query }
  | { readonly kind: "createSchema"; readonly name: string }
  | {
      readonly kind: "createProcedure";
      readonly path: Path;
      readonly replaces: "none" | "required" | "any";
      /** The whole batch: calls parse it again. */
      readonly text: string;
    }
  | CreateModule
  | {
      readonly kind: "createSequence";
      readonly path: Path;
      readonly type: TsqlType | undefined;
      readonly start: string | undefined;
      readonly increment: string | undefined;
    }
  | CreateType
  | {
      readonly kind: "drop";
      readonly object: "TABLE" | "VIEW" | "SCHEMA" | "SEQUENCE" | "PROCEDURE" | "FUNCTION" | "TRIGGER" | "TYPE";
      readonly ifExists: boolean;
      readonly paths: readonly Path[];
    }
  | { readonly kind: "dropIndex"; readonly ifExists: boolean; readonly name: string; readonly table: Path }
  | { readonly kind: "truncate"; readonly path: Path };

export interface CreateType {
  readonly kind: "createType";
  readonly path: Path;
  readonly definition:
    | { readonly kind: "alias"; readonly type: TsqlType; readonly isNullable: boolean }
    | {
        readonly kind: "table";
        readonly columns: readonly ColumnDefinition[];
        readonly constraints: readonly TableConstraint[];
        /** Text of the statement: declarations of variables parse it again. */
        readonly text: string;
      };
}

export type StatementBody =
  | Dml
  | Ddl
  | {
      readonly kind: "declare";
      readonly variables: readonly {
        readonly name: string;
        readonly type: TsqlType;
        readonly value: Expression | undefined;
      }[];
    }
  | {
      readonly kind: "declareTable";
      readonly name: string;
      readonly columns: readonly ColumnDefinition[];
      readonly constraints: readonly TableConstraint[];
    }
  | { readonly kind: "set"; readonly name: string; readonly expression: Expression }
  | { readonly kind: "setOption"; readonly options: readonly string[]; readonly value: string }
  | { readonly kind: "isolation"; readonly level: string }
  | { readonly kind: "identityInsert"; readonly path: Path; readonly isOn: boolean }
  | {
      readonly kind: "if";
      readonly condition: Predicate;
      readonly consequent: Statement;
      readonly otherwise: Statement | undefined;
    }
  | { readonly kind: "while"; readonly condition: Predicate; readonly body: Statement }
  | { readonly kind: "block"; readonly statements: readonly Statement[] }
  | { readonly kind: "try"; readonly body: readonly Statement[]; readonly handler: readonly Statement[] }
  | { readonly kind: "break" | "continue" }
  | { readonly kind: "return"; readonly expression: Expression | undefined }
  | { readonly kind: "print"; readonly expression: Expression }
  | { readonly kind: "raiserror"; readonly arguments: readonly Expression[]; readonly options: readonly string[] }
  | { readonly kind: "throw"; readonly arguments: readonly Expression[] }
  | { readonly kind: "begin" | "commit" | "rollback" | "save"; readonly name: string | undefined }
  | DatabaseStatement
  | { readonly kind: "waitfor"; readonly delay: Expression }
  | ExecuteStatement
  | CursorStatement
  | InsertBulk;

/** Statements about databases; only the layout multi-db has several. */
export type DatabaseStatement =
  | { readonly kind: "use" | "createDatabase"; readonly database: string }
  | { readonly kind: "dropDatabase"; readonly databases: readonly string[]; readonly ifExists: boolean };

export interface CursorName {
  readonly name: string;
  readonly isGlobal: boolean;
}

export interface FetchPosition {
  readonly direction: "NEXT" | "PRIOR" | "FIRST" | "LAST" | "ABSOLUTE" | "RELATIVE";
  /** Row of ABSOLUTE and RELATIVE. */
  readonly offset?: Expression;
}

export type CursorStatement =
  | {
      readonly kind: "declareCursor";
      readonly name: string;
      /** True for GLOBAL, false for LOCAL; undefined without either. */
      readonly isGlobal: boolean | undefined;
      readonly query: Query;
    }
  | { readonly kind: "openCursor" | "closeCursor" | "deallocateCursor"; readonly cursor: CursorName }
  | {
      readonly kind: "fetch";
      readonly cursor: CursorName;
      readonly position: FetchPosition;
      /** Variables for the row; without any, the row is a result set. */
      readonly into: readonly string[];
    };

export type ExecuteStatement =
  | { readonly kind: "execute"; readonly call: Execute }
  | { readonly kind: "executeText"; readonly text: Expression };

/** Announces the message of a bulk load, whose rows have these columns. */
export interface InsertBulk {
  readonly kind: "insertBulk";
  readonly path: Path;
  readonly columns: readonly string[];
  /** False if a NULL becomes the default of its column. */
  readonly keepsNulls: boolean;
}

export interface Execute {
  readonly path: Path;
  readonly resultVariable: string | undefined;
  readonly arguments: readonly {
    readonly name: string | undefined;
    readonly value: Expression;
    readonly isOutput: boolean;
  }[];
}

/** Parameter of a procedure, or of the declaration of sp_executesql. */
export interface Parameter {
  readonly name: string;
  readonly type: TsqlType;
  readonly default: Expression | undefined;
  readonly isOutput: boolean;
  /** READONLY, which a parameter of a table type has. */
  readonly isReadOnly: boolean;
}

type Replaces = Extract<Ddl, { kind: "createProcedure" }>["replaces"];

/** A procedure as its text declares it. */
export interface ProcedureDefinition {
  readonly kind: "procedure";
  readonly path: Path;
  readonly replaces: Replaces;
  readonly parameters: readonly Parameter[];
  readonly statements: readonly Statement[];
}

export interface FunctionDefinition {
  readonly kind: "function";
  readonly path: Path;
  readonly replaces: Replaces;
  readonly parameters: readonly Parameter[];
  readonly returns:
    | { readonly kind: "scalar"; readonly type: TsqlType }
    /** Inline: the rows of one query. */
    | { readonly kind: "query"; readonly query: Query }
    /** Multi-statement: the rows of a table variable. */
    | {
        readonly kind: "table";
        readonly name: string;
        readonly columns: readonly ColumnDefinition[];
        readonly constraints: readonly TableConstraint[];
      };
  readonly statements: readonly Statement[];
}

export type TriggerEvent = "INSERT" | "UPDATE" | "DELETE";

export interface TriggerDefinition {
  readonly kind: "trigger";
  readonly path: Path;
  readonly replaces: Replaces;
  readonly table: Path;
  readonly isInsteadOf: boolean;
  readonly events: readonly TriggerEvent[];
  readonly statements: readonly Statement[];
}

export type ModuleDefinition = ProcedureDefinition | FunctionDefinition | TriggerDefinition;

/** CREATE or ALTER of a function or trigger, which PostgreSQL runs. */
export interface CreateModule {
  readonly kind: "createModule";
  readonly definition: FunctionDefinition | TriggerDefinition;
  /** The whole batch. */
  readonly text: string;
}

export interface Statement {
  readonly body: StatementBody;
  readonly line: number;
}
