/** A procedure whose rows are those of a query on the catalog; parameters are texts that may be NULL. */
export interface CatalogProcedure {
  readonly parameters: readonly string[];
  readonly query: string;
}

const byTable = ["@table_name", "@table_owner", "@table_qualifier"];
/** Procedures of the catalog that drivers and tools call, by their names. */
export const catalogProcedures: Readonly<Record<string, CatalogProcedure>> = {
  sp_tables: {
    parameters: [...byTable, "@table_type"],
    query: `
IF @table_qualifier = '%' AND @table_owner = '' AND @table_name = ''
SELECT name AS TABLE_QUALIFIER, CAST(NULL AS nvarchar(128)) AS TABLE_OWNER, CAST(NULL AS nvarchar(128)) AS TABLE_NAME,
       CAST(NULL AS varchar(32)) AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS
  FROM sys.databases ORDER BY 1
ELSE
SELECT TABLE_CATALOG AS TABLE_QUALIFIER, TABLE_SCHEMA AS TABLE_OWNER, TABLE_NAME,
       CASE TABLE_TYPE WHEN 'BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS
  FROM INFORMATION_SCHEMA.TABLES
 WHERE (@table_name IS NULL OR TABLE_NAME LIKE @table_name) AND (@table_owner IS NULL OR TABLE_SCHEMA LIKE @table_owner)
   AND (@table_type IS NULL OR CHARINDEX('''' + CASE TABLE_TYPE WHEN 'BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END + '''', @table_type) > 0)
 ORDER BY 4, 1, 2, 3`,
  },
  sp_pkeys: {
    parameters: byTable,
    query: `
SELECT k.CONSTRAINT_CATALOG AS TABLE_QUALIFIER, k.TABLE_SCHEMA AS TABLE_OWNER, k.TABLE_NAME, k.COLUMN_NAME,
       k.ORDINAL_POSITION AS KEY_SEQ, k.CONSTRAINT_NAME AS PK_NAME
  FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE k
  JOIN INFORMATION_SCHEMA.TABLE_CONSTRAINTS c ON c.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND c.TABLE_NAME = k.TABLE_NAME
 WHERE c.CONSTRAINT_TYPE = 'PRIMARY KEY' AND k.TABLE_NAME = @table_name
   AND (@table_owner IS NULL OR k.TABLE_SCHEMA = @table_owner)
 ORDER BY 1, 2, 3, 5`,
  },
  sp_table_type_columns_100: {
    parameters: byTable,
    query: `
SELECT DB_NAME() AS TABLE_QUALIFIER, SCHEMA_NAME(t.schema_id) AS TABLE_OWNER, t.name AS TABLE_NAME, c.name AS COLUMN_NAME,
       y.name AS TYPE_NAME, c.[precision] AS PRECISION, c.max_length AS LENGTH, c.scale AS SCALE, c.is_nullable AS NULLABLE,
       c.column_id AS ORDINAL_POSITION
  FROM sys.table_types t JOIN sys.columns c ON c.object_id = t.type_table_object_id
  JOIN sys.types y ON y.user_type_id = c.user_type_id
 WHERE t.name LIKE @table_name AND (@table_owner IS NULL OR SCHEMA_NAME(t.schema_id) LIKE @table_owner)
 ORDER BY 2, 3, c.column_id`,
  },
  sp_helpindex: {
    parameters: ["@objname"],
    query: `
DECLARE @id int = OBJECT_ID(@objname);
SELECT index_name, index_description, index_keys FROM sys.holdfast_index_keys WHERE object_id = @id ORDER BY index_name`,
  },
  sp_helpconstraint: {
    parameters: ["@objname", "@nomsg"],
    query: `
SELECT @objname AS [Object Name];
SELECT CASE c.CONSTRAINT_TYPE WHEN 'PRIMARY KEY' THEN 'PRIMARY KEY (clustered)' WHEN 'UNIQUE' THEN 'UNIQUE (non-clustered)' ELSE c.CONSTRAINT_TYPE END AS constraint_type,
       c.CONSTRAINT_NAME AS constraint_name, COALESCE(r.DELETE_RULE, '(n/a)') AS delete_action, COALESCE(r.UPDATE_RULE, '(n/a)') AS update_action,
       'Enabled' AS status_enabled, 'Is_For_Replication' AS status_for_replication,
       COALESCE(k.CHECK_CLAUSE, (SELECT STRING_AGG(u.COLUMN_NAME, ', ') WITHIN GROUP (ORDER BY u.ORDINAL_POSITION) FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE u
         WHERE u.CONSTRAINT_NAME = c.CONSTRAINT_NAME AND u.TABLE_NAME = c.TABLE_NAME AND u.TABLE_SCHEMA = c.TABLE_SCHEMA)) AS constraint_keys
  FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS c
  LEFT JOIN INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_NAME = c.CONSTRAINT_NAME AND r.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA
  LEFT JOIN INFORMATION_SCHEMA.CHECK_CONSTRAINTS k ON k.CONSTRAINT_NAME = c.CONSTRAINT_NAME AND k.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA
 WHERE OBJECT_ID(QUOTENAME(c.TABLE_SCHEMA) + '.' + QUOTENAME(c.TABLE_NAME)) = OBJECT_ID(@objname)
 ORDER BY 1, 2`,
  },
  sp_helptext: {
    parameters: ["@objname"],
    query: "SELECT definition AS [Text] FROM sys.sql_modules WHERE object_id = OBJECT_ID(@objname)",
  },
  sp_databases: {
    parameters: [],
    query:
      "SELECT name AS DATABASE_NAME, CAST(NULL AS int) AS DATABASE_SIZE, CAST(NULL AS varchar(254)) AS REMARKS FROM sys.databases ORDER BY name",
  },
};
