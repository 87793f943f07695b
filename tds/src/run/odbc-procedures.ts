import type { CatalogProcedure } from "./catalog-procedures.ts";

/*
 * The procedures of the catalog that ODBC and JDBC drivers call, with the columns of SQL Server in its order: drivers
 * insert the rows into tables of their own. Types have the codes of ODBC 3, and for other clients those of ODBC 2.
 */

/** Types by their names: codes, digits or characters, bytes, and the other columns of sp_datatype_info. */
// biome-ignore format: a table
const rows = [
  ["bigint",           -5,   -5,   -5,   "NULL", 19,         8,          "10",   108, "",    "",    "",                  "0"],
  ["int",              4,    4,    4,    "NULL", 10,         4,          "10",   38,  "",    "",    "",                  "0"],
  ["smallint",         5,    5,    5,    "NULL", 5,          2,          "10",   38,  "",    "",    "",                  "0"],
  ["tinyint",          -6,   -6,   -6,   "NULL", 3,          1,          "10",   38,  "",    "",    "",                  "0"],
  ["bit",              -7,   -7,   -7,   "NULL", 1,          1,          "NULL", 50,  "",    "",    "",                  "0"],
  ["decimal",          3,    3,    3,    "NULL", 38,         17,         "10",   106, "",    "",    "precision,scale",   "38"],
  ["money",            3,    3,    3,    "NULL", 19,         21,         "10",   110, "$",   "",    "",                  "4"],
  ["smallmoney",       3,    3,    3,    "NULL", 10,         12,         "10",   110, "$",   "",    "",                  "4"],
  ["float",            6,    6,    6,    "NULL", 53,         8,          "2",    109, "",    "",    "",                  "NULL"],
  ["real",             7,    7,    7,    "NULL", 24,         4,          "2",    109, "",    "",    "",                  "NULL"],
  ["date",             91,   -9,   9,    "1",    10,         6,          "NULL", 0,   "''",  "''",  "",                  "NULL"],
  ["time",             -154, -9,   -154, "NULL", 16,         12,         "NULL", 0,   "''",  "''",  "scale",             "7"],
  ["datetime2",        93,   -9,   9,    "3",    27,         16,         "NULL", 0,   "''",  "''",  "scale",             "7"],
  ["datetimeoffset",   -155, -9,   -155, "NULL", 34,         20,         "NULL", 0,   "''",  "''",  "scale",             "7"],
  ["datetime",         93,   11,   9,    "3",    23,         16,         "NULL", 111, "''",  "''",  "",                  "3"],
  ["smalldatetime",    93,   11,   9,    "3",    16,         16,         "NULL", 111, "''",  "''",  "",                  "0"],
  ["char",             1,    1,    1,    "NULL", 8000,       8000,       "NULL", 39,  "''",  "''",  "length",            "NULL"],
  ["varchar",          12,   12,   12,   "NULL", 8000,       8000,       "NULL", 39,  "''",  "''",  "max length",        "NULL"],
  ["text",             -1,   -1,   -1,   "NULL", 2147483647, 2147483647, "NULL", 35,  "''",  "''",  "",                  "NULL"],
  ["nchar",            -8,   -8,   -8,   "NULL", 4000,       8000,       "NULL", 39,  "N''", "''",  "length",            "NULL"],
  ["nvarchar",         -9,   -9,   -9,   "NULL", 4000,       8000,       "NULL", 39,  "N''", "''",  "max length",        "NULL"],
  ["ntext",            -10,  -10,  -10,  "NULL", 1073741823, 2147483646, "NULL", 35,  "N''", "''",  "",                  "NULL"],
  ["binary",           -2,   -2,   -2,   "NULL", 8000,       8000,       "NULL", 37,  "0x",  "",    "length",            "NULL"],
  ["varbinary",        -3,   -3,   -3,   "NULL", 8000,       8000,       "NULL", 37,  "0x",  "",    "max length",        "NULL"],
  ["image",            -4,   -4,   -4,   "NULL", 2147483647, 2147483647, "NULL", 34,  "0x",  "",    "",                  "NULL"],
  ["uniqueidentifier", -11,  -11,  -11,  "NULL", 36,         16,         "NULL", 37,  "''",  "''",  "",                  "NULL"],
  ["xml",              -152, -10,  -152, "NULL", 0,          0,          "NULL", 0,   "N''", "''",  "",                  "NULL"],
  ["sql_variant",      -150, -150, -150, "NULL", 8000,       8000,       "NULL", 39,  "",    "",    "",                  "NULL"],
] as const;

/** The table as a source of FROM, with the alias `d`. */
export const odbcTypes = `(VALUES ${rows
  .map(([name, code, older, sql, sub, size, bytes, radix, tds, prefix, suffix, parameters, scale]) => {
    const text = (value: string) => (value === "" ? "CAST(NULL AS varchar(32))" : `CAST('${value}' AS varchar(32))`);
    const numbers = [code, older, sql, sub, size, bytes, radix, tds, scale].map((each) => `CAST(${each} AS int)`);
    return `('${name}', ${numbers.join(", ")}, ${text(prefix)}, ${text(suffix)}, ${text(parameters)})`;
  })
  .join(",\n  ")}) AS d (name, code, older, sql_type, sub, size, bytes, radix, tds, scale, prefix, suffix, parameters)`;

export const code = "CAST(CASE @ODBCVer WHEN '3' THEN d.code ELSE d.older END AS smallint)";
export const isText = "d.name IN ('char', 'varchar', 'nchar', 'nvarchar', 'binary', 'varbinary')";
/** Digits or characters of a column `c`; 0 for `max`. */
export const precision = `CASE WHEN d.name IN ('nchar', 'nvarchar') THEN CASE c.max_length WHEN -1 THEN 0 ELSE c.max_length / 2 END
    WHEN ${isText} THEN CASE c.max_length WHEN -1 THEN 0 ELSE c.max_length END WHEN d.name = 'decimal' THEN c.[precision]
    WHEN d.parameters = 'scale' THEN d.size - 7 + c.scale - CASE c.scale WHEN 0 THEN 1 ELSE 0 END ELSE d.size END`;
export const length = `CASE WHEN ${isText} THEN CASE c.max_length WHEN -1 THEN 0 ELSE c.max_length END WHEN d.name = 'decimal' THEN c.[precision] + 2
    ELSE d.bytes END`;
export const scale = "CASE WHEN d.name = 'decimal' OR d.parameters = 'scale' THEN c.scale ELSE d.scale END";

const ofTables = `sys.columns c JOIN sys.objects o ON o.object_id = c.object_id AND o.type IN ('U', 'V')
  JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.types y ON y.user_type_id = c.system_type_id JOIN ${odbcTypes} ON d.name = y.name`;

/** Columns of sp_columns; `more` are those that later versions have before the last one. */
const columns = (more: string) => `
SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, c.name AS COLUMN_NAME, ${code} AS DATA_TYPE,
  CAST(CASE c.is_identity WHEN 1 THEN d.name + ' identity' ELSE d.name END AS nvarchar(128)) AS TYPE_NAME,
  CAST(${precision} AS int) AS [PRECISION], CAST(${length} AS int) AS [LENGTH], CAST(${scale} AS smallint) AS SCALE,
  CAST(d.radix AS smallint) AS RADIX, CAST(c.is_nullable AS smallint) AS NULLABLE, CAST(NULL AS varchar(254)) AS REMARKS,
  CAST(f.definition AS nvarchar(4000)) AS COLUMN_DEF, CAST(d.sql_type AS smallint) AS SQL_DATA_TYPE, CAST(d.sub AS smallint) AS SQL_DATETIME_SUB,
  CAST(CASE WHEN ${isText} THEN CASE c.max_length WHEN -1 THEN 0 ELSE c.max_length END END AS int) AS CHAR_OCTET_LENGTH,
  c.column_id AS ORDINAL_POSITION, CAST(CASE c.is_nullable WHEN 1 THEN 'YES' ELSE 'NO' END AS varchar(254)) AS IS_NULLABLE${more},
  CAST(d.tds AS tinyint) AS SS_DATA_TYPE
  FROM ${ofTables} LEFT JOIN sys.default_constraints f ON f.object_id = c.default_object_id
 WHERE (@table_name IS NULL OR o.name LIKE @table_name) AND (@table_owner IS NULL OR s.name LIKE @table_owner)
   AND (@column_name IS NULL OR c.name LIKE @column_name)
 ORDER BY 1, 2, 3, c.column_id`;

const udt = (prefix: string) =>
  ["UDT_CATALOG", "UDT_SCHEMA", "UDT_ASSEMBLY_TYPE", "XML_SCHEMACOLLECTION_CATALOG", "XML_SCHEMACOLLECTION_SCHEMA"]
    .concat("XML_SCHEMACOLLECTION")
    .map((name) => `, CAST(NULL AS nvarchar(128)) AS ${prefix}_${name}_NAME`)
    .join("");
const later = `, CAST(0 AS smallint) AS SS_IS_SPARSE, CAST(0 AS smallint) AS SS_IS_COLUMN_SET, CAST(c.is_computed AS smallint) AS SS_IS_COMPUTED,
  CAST(c.is_identity AS smallint) AS SS_IS_IDENTITY${udt("SS")}`;

const byTable = ["@table_name", "@table_owner", "@table_qualifier"];
const laterColumns: CatalogProcedure = {
  parameters: [...byTable, "@column_name", "@NameScope", "@ODBCVer", "@fUsePattern"],
  query: columns(later),
};

const statistics: CatalogProcedure = {
  parameters: [...byTable, "@index_name", "@is_unique", "@accuracy"],
  query: `
SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, CAST(1 - i.is_unique AS smallint) AS NON_UNIQUE,
  o.name AS INDEX_QUALIFIER, CAST(i.name AS nvarchar(128)) AS INDEX_NAME, CAST(CASE i.type WHEN 1 THEN 1 ELSE 3 END AS smallint) AS [TYPE],
  CAST(k.key_ordinal AS smallint) AS SEQ_IN_INDEX, c.name AS COLUMN_NAME,
  CAST(CASE k.is_descending_key WHEN 1 THEN 'D' ELSE 'A' END AS char(1)) AS [COLLATION], CAST(NULL AS int) AS CARDINALITY, CAST(NULL AS int) AS PAGES,
  CAST(i.filter_definition AS varchar(128)) AS FILTER_CONDITION
  FROM sys.indexes i JOIN sys.objects o ON o.object_id = i.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id
  JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal > 0
  JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
 WHERE o.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) AND (@index_name IS NULL OR i.name LIKE @index_name)
   AND (@is_unique IS NULL OR @is_unique <> 'Y' OR i.is_unique = 1)
 ORDER BY 4, 7, 6, 8`,
};

const dataTypes: CatalogProcedure = {
  parameters: ["@data_type", "@ODBCVer"],
  query: `
SELECT CAST(d.name AS nvarchar(128)) AS TYPE_NAME, ${code} AS DATA_TYPE, d.size AS [PRECISION], d.prefix AS LITERAL_PREFIX, d.suffix AS LITERAL_SUFFIX,
  d.parameters AS CREATE_PARAMS, CAST(1 AS smallint) AS NULLABLE, CAST(0 AS smallint) AS CASE_SENSITIVE,
  CAST(CASE WHEN d.name IN ('text', 'ntext') THEN 1 WHEN d.name IN ('image', 'xml') THEN 0 WHEN d.prefix LIKE '%''' THEN 3 ELSE 2 END AS smallint) AS SEARCHABLE,
  CAST(CASE WHEN d.name IN ('tinyint', 'bit') THEN 1 WHEN d.radix IS NOT NULL THEN 0 END AS smallint) AS UNSIGNED_ATTRIBUTE,
  CAST(CASE WHEN d.name LIKE '%money' THEN 1 ELSE 0 END AS smallint) AS [MONEY], CAST(CASE WHEN d.radix IS NOT NULL THEN 0 END AS smallint) AS AUTO_INCREMENT,
  CAST(d.name AS nvarchar(128)) AS LOCAL_TYPE_NAME, CAST(CASE WHEN d.scale IS NULL THEN NULL WHEN d.parameters IS NULL THEN d.scale ELSE 0 END AS smallint) AS MINIMUM_SCALE,
  CAST(d.scale AS smallint) AS MAXIMUM_SCALE, CAST(d.sql_type AS smallint) AS SQL_DATA_TYPE, CAST(d.sub AS smallint) AS SQL_DATETIME_SUB,
  d.radix AS NUM_PREC_RADIX, CAST(NULL AS smallint) AS INTERVAL_PRECISION, CAST(0 AS smallint) AS USERTYPE
  FROM ${odbcTypes}
 WHERE @data_type IS NULL OR CAST(@data_type AS int) IN (0, CASE @ODBCVer WHEN '3' THEN d.code ELSE d.older END)
 ORDER BY 2, 1`,
};

const specialColumns: CatalogProcedure = {
  parameters: [...byTable, "@col_type", "@scope", "@nullable", "@ODBCVer"],
  query: `
SELECT CAST(0 AS smallint) AS SCOPE, c.name AS COLUMN_NAME, ${code} AS DATA_TYPE, CAST(d.name AS nvarchar(128)) AS TYPE_NAME,
  CAST(${precision} AS int) AS [PRECISION], CAST(${length} AS int) AS [LENGTH], CAST(${scale} AS smallint) AS SCALE, CAST(1 AS smallint) AS PSEUDO_COLUMN
  FROM ${ofTables}
  JOIN sys.indexes i ON i.object_id = o.object_id AND i.is_primary_key = 1
  JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.column_id = c.column_id
 WHERE o.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) AND (@col_type IS NULL OR @col_type = 'R')
 ORDER BY k.key_ordinal`,
};

/** Rules of ODBC: 0 CASCADE, 1 NO ACTION, 2 SET NULL, 3 SET DEFAULT. */
const rule = (action: string) => `CAST(CASE ${action} WHEN 1 THEN 0 WHEN 0 THEN 1 ELSE ${action} END AS smallint)`;

/** Procedures of drivers, by their names. */
export const odbcProcedures: Readonly<Record<string, CatalogProcedure>> = {
  sp_columns: { parameters: [...byTable, "@column_name", "@ODBCVer"], query: columns("") },
  sp_columns_90: laterColumns,
  sp_columns_100: laterColumns,
  sp_statistics: statistics,
  sp_statistics_100: statistics,
  sp_datatype_info: dataTypes,
  sp_datatype_info_90: dataTypes,
  sp_datatype_info_100: dataTypes,
  sp_special_columns: specialColumns,
  sp_special_columns_90: specialColumns,
  sp_special_columns_100: specialColumns,
  sp_fkeys: {
    parameters: ["pk", "fk"].flatMap((side) => ["name", "owner", "qualifier"].map((part) => `@${side}table_${part}`)),
    query: `
SELECT DB_NAME() AS PKTABLE_QUALIFIER, ps.name AS PKTABLE_OWNER, p.name AS PKTABLE_NAME, pc.name AS PKCOLUMN_NAME,
  DB_NAME() AS FKTABLE_QUALIFIER, fs.name AS FKTABLE_OWNER, t.name AS FKTABLE_NAME, fc.name AS FKCOLUMN_NAME, CAST(k.constraint_column_id AS smallint) AS KEY_SEQ,
  ${rule("f.update_referential_action")} AS UPDATE_RULE, ${rule("f.delete_referential_action")} AS DELETE_RULE, f.name AS FK_NAME,
  (SELECT TOP 1 q.name FROM sys.key_constraints q WHERE q.parent_object_id = p.object_id AND q.type = 'PK') AS PK_NAME, CAST(7 AS smallint) AS DEFERRABILITY
  FROM sys.foreign_keys f JOIN sys.foreign_key_columns k ON k.constraint_object_id = f.object_id
  JOIN sys.objects t ON t.object_id = f.parent_object_id JOIN sys.schemas fs ON fs.schema_id = t.schema_id
  JOIN sys.objects p ON p.object_id = f.referenced_object_id JOIN sys.schemas ps ON ps.schema_id = p.schema_id
  JOIN sys.columns fc ON fc.object_id = t.object_id AND fc.column_id = k.parent_column_id
  JOIN sys.columns pc ON pc.object_id = p.object_id AND pc.column_id = k.referenced_column_id
 WHERE (@pktable_name IS NULL OR p.name = @pktable_name) AND (@pktable_owner IS NULL OR ps.name = @pktable_owner)
   AND (@fktable_name IS NULL OR t.name = @fktable_name) AND (@fktable_owner IS NULL OR fs.name = @fktable_owner)
 ORDER BY 5, 6, 7, 9`,
  },
  sp_stored_procedures: {
    parameters: ["@sp_name", "@sp_owner", "@sp_qualifier", "@fUsePattern"],
    query: `
SELECT DB_NAME() AS PROCEDURE_QUALIFIER, s.name AS PROCEDURE_OWNER,
  CAST(o.name + CASE o.type WHEN 'P' THEN ';1' ELSE ';0' END AS nvarchar(134)) AS PROCEDURE_NAME, CAST(-1 AS int) AS NUM_INPUT_PARAMS,
  CAST(-1 AS int) AS NUM_OUTPUT_PARAMS, CAST(-1 AS int) AS NUM_RESULT_SETS, CAST(NULL AS varchar(254)) AS REMARKS, CAST(2 AS smallint) AS PROCEDURE_TYPE
  FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id
 WHERE o.type IN ('P', 'FN', 'IF', 'TF') AND (@sp_name IS NULL OR o.name LIKE @sp_name) AND (@sp_owner IS NULL OR s.name LIKE @sp_owner)
 ORDER BY 1, 2, 3`,
  },
};
