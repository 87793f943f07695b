/**
 * The content of a node's member: a plain value, other nodes (each with its own type), or one node of a type that the
 * grammar fixes.
 */
export type FieldKind = "value" | "nodes" | { readonly one: string };

const one = (type: string): FieldKind => ({ one: type });
const value = "value";
const nodes = "nodes";

/**
 * The nodes of PostgreSQL's parse tree that only read, each with all members that it may have. Everything else is
 * refused: a writing CTE, a lock, INTO, a parameter, and every node that a later version of the parser adds.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const readOnlyNodes: Readonly<Record<string, Readonly<Record<string, FieldKind>>>> = {
  SelectStmt:       { distinctClause: nodes, targetList: nodes, fromClause: nodes, whereClause: nodes, groupClause: nodes, groupDistinct: value, havingClause: nodes, windowClause: nodes, valuesLists: nodes, sortClause: nodes, limitOffset: nodes, limitCount: nodes, limitOption: value, withClause: one("WithClause"), op: value, all: value, larg: one("SelectStmt"), rarg: one("SelectStmt") },
  WithClause:       { ctes: nodes, recursive: value },
  CommonTableExpr:  { ctename: value, aliascolnames: nodes, ctematerialized: value, ctequery: nodes, search_clause: one("CTESearchClause"), cycle_clause: one("CTECycleClause") },
  CTESearchClause:  { search_col_list: nodes, search_breadth_first: value, search_seq_column: value },
  CTECycleClause:   { cycle_col_list: nodes, cycle_mark_column: value, cycle_mark_value: nodes, cycle_mark_default: nodes, cycle_path_column: value },
  ResTarget:        { name: value, indirection: nodes, val: nodes },
  ColumnRef:        { fields: nodes },
  A_Star:           {},
  A_Const:          { ival: value, fval: value, boolval: value, sval: value, bsval: value, isnull: value },
  A_Expr:           { kind: value, name: nodes, lexpr: nodes, rexpr: nodes },
  A_ArrayExpr:      { elements: nodes },
  A_Indirection:    { arg: nodes, indirection: nodes },
  A_Indices:        { is_slice: value, lidx: nodes, uidx: nodes },
  BoolExpr:         { boolop: value, args: nodes },
  NullTest:         { arg: nodes, nulltesttype: value, argisrow: value },
  BooleanTest:      { arg: nodes, booltesttype: value },
  FuncCall:         { funcname: nodes, args: nodes, agg_order: nodes, agg_filter: nodes, over: one("WindowDef"), agg_within_group: value, agg_star: value, agg_distinct: value, func_variadic: value, funcformat: value },
  NamedArgExpr:     { arg: nodes, name: value, argnumber: value },
  WindowDef:        { name: value, refname: value, partitionClause: nodes, orderClause: nodes, frameOptions: value, startOffset: nodes, endOffset: nodes },
  SortBy:           { node: nodes, sortby_dir: value, sortby_nulls: value, useOp: nodes },
  TypeCast:         { arg: nodes, typeName: one("TypeName") },
  TypeName:         { names: nodes, setof: value, typmods: nodes, typemod: value, arrayBounds: nodes },
  CollateClause:    { arg: nodes, collname: nodes },
  SubLink:          { subLinkType: value, subLinkId: value, testexpr: nodes, operName: nodes, subselect: nodes },
  CaseExpr:         { arg: nodes, args: nodes, defresult: nodes },
  CaseWhen:         { expr: nodes, result: nodes },
  CoalesceExpr:     { args: nodes },
  MinMaxExpr:       { op: value, args: nodes },
  SQLValueFunction: { op: value, typmod: value },
  RowExpr:          { args: nodes, row_format: value },
  GroupingFunc:     { args: nodes },
  GroupingSet:      { kind: value, content: nodes },
  RangeVar:         { schemaname: value, relname: value, inh: value, relpersistence: value, alias: one("Alias") },
  Alias:            { aliasname: value, colnames: nodes },
  RangeSubselect:   { lateral: value, subquery: nodes, alias: one("Alias") },
  RangeFunction:    { lateral: value, ordinality: value, is_rowsfrom: value, functions: nodes, alias: one("Alias"), coldeflist: nodes },
  ColumnDef:        { colname: value, typeName: one("TypeName"), is_local: value },
  JoinExpr:         { jointype: value, isNatural: value, larg: nodes, rarg: nodes, usingClause: nodes, join_using_alias: one("Alias"), quals: nodes, alias: one("Alias") },
  List:             { items: nodes },
  String:           { sval: value },
  Integer:          { ival: value },
  Float:            { fval: value },
  Boolean:          { boolval: value },
  VariableShowStmt: { name: value },
  ExplainStmt:      { query: nodes, options: nodes },
  DefElem:          { defname: value, arg: nodes, defaction: value },
};

/** Members that only locate a node in the text. */
export const locationMembers: ReadonlySet<string> = new Set([
  "location",
  "stmt_location",
  "stmt_len",
  "list_start",
  "list_end",
  "rexpr_list_start",
  "rexpr_list_end",
  "name_location",
]);

/** Options of EXPLAIN that do not run the statement. */
export const explainOptions: ReadonlySet<string> = new Set([
  "verbose",
  "costs",
  "settings",
  "generic_plan",
  "memory",
  "summary",
  "format",
]);

/** Names for users of the nodes that are refused most. */
// biome-ignore format: a table, aligned so that it reads as one
export const refusedWords: Readonly<Record<string, string>> = {
  InsertStmt: "INSERT", UpdateStmt: "UPDATE", DeleteStmt: "DELETE", MergeStmt: "MERGE", TruncateStmt: "TRUNCATE",
  CopyStmt: "COPY", DoStmt: "DO", CallStmt: "CALL", PrepareStmt: "PREPARE", ExecuteStmt: "EXECUTE", VariableSetStmt: "SET",
  TransactionStmt: "BEGIN, COMMIT and the like", LockStmt: "LOCK", DropStmt: "DROP", CreateStmt: "CREATE TABLE",
  ViewStmt: "CREATE VIEW", CreateTableAsStmt: "CREATE TABLE AS", GrantStmt: "GRANT", AlterTableStmt: "ALTER TABLE",
  ParamRef: "a parameter", lockingClause: "FOR UPDATE and the like", intoClause: "INTO", catalogname: "a database before the schema",
  DeclareCursorStmt: "DECLARE", FetchStmt: "FETCH", ListenStmt: "LISTEN", NotifyStmt: "NOTIFY", VacuumStmt: "VACUUM",
};
