// Steps of a JDBC driver on a front end of T-SQL: sign-in, types, statements, batches, procedures and metadata. The
// arguments are the URL, the user and the password; each step prints its value or its error as a line of JSON.
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.ArrayList;
import java.util.List;

public class TdsJdbc {
  interface Step { Object run() throws Exception; }

  static Connection connection;
  /** The connection of a bulk copy, beside the one that it reads from. */
  static Connection target;

  public static void main(String[] argv) throws Exception {
    boolean isMicrosoft = argv[0].startsWith("jdbc:sqlserver:");
    step("connect", () -> {
      connection = DriverManager.getConnection(argv[0], argv[1], argv[2]);
      return connection.getMetaData().getDatabaseProductName();
    });
    step("wrong password", () -> {
      try (Connection other = DriverManager.getConnection(argv[0], argv[1], "wrong")) {
        return "no error";
      } catch (SQLException error) {
        return error.getErrorCode();
      }
    });
    step("select", () -> rows("SELECT 1 AS a, N'ä日' AS b, CAST(NULL AS int) AS c"));
    step("create", () -> {
      try (Statement s = connection.createStatement()) {
        s.execute("CREATE TABLE Parents (Id int IDENTITY PRIMARY KEY, Name nvarchar(50) NOT NULL UNIQUE)");
        s.execute("CREATE TABLE Kids (A int NOT NULL, B varchar(10) NOT NULL, ParentId int REFERENCES Parents (Id) ON DELETE CASCADE,"
          + " Note nvarchar(max), Price decimal(10,2) DEFAULT 1.5, CONSTRAINT PK_Kids PRIMARY KEY (B, A))");
        s.execute("CREATE INDEX IX_Kids ON Kids (ParentId)");
        s.execute("CREATE VIEW KidNames AS SELECT A, B FROM Kids");
        return "done";
      }
    });
    step("types", () -> types(isMicrosoft));
    step("nulls", () -> {
      try (PreparedStatement s = connection.prepareStatement("SELECT ? AS a, ? AS b, ? AS c, ? AS d")) {
        s.setNull(1, Types.INTEGER); s.setNull(2, Types.VARCHAR); s.setNull(3, Types.TIMESTAMP); s.setNull(4, Types.VARBINARY);
        return rows(s.executeQuery());
      }
    });
    step("long texts", () -> {
      try (PreparedStatement s = connection.prepareStatement("SELECT ? AS a, ? AS b")) {
        s.setString(1, "ö".repeat(200_000)); s.setBytes(2, new byte[300_000]);
        ResultSet r = s.executeQuery();
        r.next();
        return List.of(r.getString(1).length(), r.getBytes(2).length);
      }
    });
    step("generated keys", () -> {
      try (PreparedStatement s = connection.prepareStatement("INSERT INTO Parents (Name) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
        s.setString(1, "Ann");
        int count = s.executeUpdate();
        ResultSet keys = s.getGeneratedKeys();
        keys.next();
        return List.of(count, keys.getInt(1));
      }
    });
    step("prepared again", () -> {
      List<Object> counts = new ArrayList<>();
      try (PreparedStatement s = connection.prepareStatement("SELECT COUNT(*) FROM Parents WHERE Id < ? AND Name LIKE ?")) {
        for (int i = 0; i < 5; i++) {
          s.setInt(1, 10 + i); s.setString(2, "a%");
          ResultSet r = s.executeQuery();
          r.next();
          counts.add(r.getInt(1));
        }
      }
      return counts;
    });
    step("batch", () -> {
      try (PreparedStatement s = connection.prepareStatement("INSERT INTO Kids (A, B, ParentId, Note) VALUES (?, ?, 1, ?)")) {
        for (int i = 1; i <= 100; i++) { s.setInt(1, i); s.setString(2, "k" + i); s.setString(3, i % 2 == 0 ? null : "note"); s.addBatch(); }
        int sum = 0;
        for (int count : s.executeBatch()) sum += count;
        return sum;
      }
    });
    step("batch of statements", () -> {
      try (Statement s = connection.createStatement()) {
        s.addBatch("UPDATE Kids SET Note = 'x' WHERE A <= 10"); s.addBatch("DELETE FROM Kids WHERE A = 100");
        List<Object> counts = new ArrayList<>();
        for (int count : s.executeBatch()) counts.add(count);
        return counts;
      }
    });
    step("failing batch", () -> {
      try (Statement s = connection.createStatement()) {
        s.addBatch("INSERT INTO Kids (A, B) VALUES (200, 'z')"); s.addBatch("INSERT INTO Kids (A, B) VALUES (200, 'z')");
        s.executeBatch();
        return "no error";
      } catch (BatchUpdateException error) {
        return List.of(error.getErrorCode(), error.getUpdateCounts()[0]);
      }
    });
    step("errors", () -> {
      List<Object> codes = new ArrayList<>();
      for (String sql : List.of("SELECT * FROM missing", "SELECT 1 / 0", "INSERT Parents (Name) VALUES ('ANN')", "SELEC 1", "THROW 50100, N'mine', 3")) {
        try (Statement s = connection.createStatement()) {
          s.execute(sql);
          while (s.getMoreResults() || s.getUpdateCount() != -1) { }
          codes.add("none");
        } catch (SQLException error) {
          codes.add(error.getErrorCode());
        }
      }
      return codes;
    });
    step("transaction", () -> {
      connection.setAutoCommit(false);
      try (Statement s = connection.createStatement()) {
        s.executeUpdate("DELETE FROM Kids WHERE A > 50");
        Savepoint point = connection.setSavepoint("here");
        s.executeUpdate("DELETE FROM Kids");
        connection.rollback(point);
        int inside = count("Kids");
        connection.rollback();
        return List.of(inside, count("Kids"));
      } finally {
        connection.rollback();
        connection.setAutoCommit(true);
      }
    });
    step("isolation", () -> {
      List<Object> found = new ArrayList<>();
      for (int level : List.of(Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE, Connection.TRANSACTION_READ_COMMITTED)) {
        connection.setTransactionIsolation(level);
        found.add(connection.getTransactionIsolation());
      }
      return found;
    });
    step("procedure", () -> {
      try (Statement s = connection.createStatement()) {
        s.execute("CREATE PROCEDURE Twice @a int, @b int OUTPUT, @c nvarchar(20) = N'def' AS BEGIN SET NOCOUNT ON; SET @b = @a * 2; SELECT @c AS c; RETURN 7 END");
      }
      try (CallableStatement s = connection.prepareCall("{? = call Twice(?, ?, ?)}")) {
        s.registerOutParameter(1, Types.INTEGER); s.setInt(2, 21); s.registerOutParameter(3, Types.INTEGER); s.setString(4, "ü");
        List<Object> found = new ArrayList<>();
        boolean hasRows = s.execute();
        if (hasRows) found.addAll(rows(s.getResultSet()));
        while (s.getMoreResults() || s.getUpdateCount() != -1) { }
        found.add(s.getInt(1)); found.add(s.getInt(3));
        return found;
      }
    });
    step("named parameters", () -> {
      try (CallableStatement s = connection.prepareCall("{call Twice(?, ?)}")) {
        s.setInt("@a", 4); s.registerOutParameter("@b", Types.INTEGER);
        s.execute();
        while (s.getMoreResults() || s.getUpdateCount() != -1) { }
        return s.getInt("@b");
      }
    });
    step("several results", () -> {
      List<Object> found = new ArrayList<>();
      try (Statement s = connection.createStatement()) {
        boolean isRows = s.execute("SELECT 1 AS a; UPDATE Kids SET Note = 'y' WHERE A = 1; SELECT 2 AS b, 3 AS c");
        for (;;) {
          if (isRows) found.addAll(rows(s.getResultSet()));
          else if (s.getUpdateCount() == -1) break;
          else found.add(s.getUpdateCount());
          isRows = s.getMoreResults();
        }
      }
      return found;
    });
    step("scrollable", () -> {
      try (Statement s = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY)) {
        ResultSet r = s.executeQuery("SELECT A FROM Kids ORDER BY A");
        r.last();
        int last = r.getInt(1);
        r.first();
        return List.of(last, r.getInt(1));
      }
    });
    step("timeout", () -> {
      try (Statement s = connection.createStatement()) {
        s.setQueryTimeout(1);
        s.execute("WAITFOR DELAY '00:00:30'");
        return "no error";
      } catch (SQLException error) {
        return count("Parents");
      }
    });
    DatabaseMetaData data = connection.getMetaData();
    step("getTables", () -> columnsOf(data.getTables(null, "dbo", "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE"));
    step("getTables of a pattern", () -> columnsOf(data.getTables(null, null, "par%", null), "TABLE_SCHEM", "TABLE_NAME"));
    step("getColumns", () -> columnsOf(data.getColumns(null, "dbo", "Kids", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "IS_NULLABLE", "ORDINAL_POSITION"));
    step("getColumns of an identity", () -> columnsOf(data.getColumns(null, "dbo", "Parents", "Id"), "TYPE_NAME", "IS_AUTOINCREMENT"));
    step("getPrimaryKeys", () -> columnsOf(data.getPrimaryKeys(null, "dbo", "Kids"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
    step("getImportedKeys", () -> columnsOf(data.getImportedKeys(null, "dbo", "Kids"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "DELETE_RULE"));
    step("getExportedKeys", () -> columnsOf(data.getExportedKeys(null, "dbo", "Parents"), "FKTABLE_NAME", "FKCOLUMN_NAME"));
    step("getCrossReference", () -> columnsOf(data.getCrossReference(null, "dbo", "Parents", null, "dbo", "Kids"), "FKCOLUMN_NAME", "KEY_SEQ"));
    step("getIndexInfo", () -> columnsOf(data.getIndexInfo(null, "dbo", "Kids", false, true), "INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME", "ORDINAL_POSITION"));
    step("getSchemas", () -> columnsOf(data.getSchemas(), "TABLE_SCHEM").toString().contains("dbo"));
    step("getCatalogs", () -> columnsOf(data.getCatalogs(), "TABLE_CAT").toString().contains("defaultdb"));
    step("getTypeInfo", () -> columnsOf(data.getTypeInfo(), "TYPE_NAME").toString().contains("nvarchar"));
    step("getProcedures", () -> columnsOf(data.getProcedures(null, "dbo", "Twi%"), "PROCEDURE_NAME"));
    step("getProcedureColumns", () -> columnsOf(data.getProcedureColumns(null, "dbo", "Twice", "%"), "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME"));
    step("getFunctions", () -> columnsOf(data.getFunctions(null, "dbo", "nothing%"), "FUNCTION_NAME"));
    step("getBestRowIdentifier", () -> columnsOf(data.getBestRowIdentifier(null, "dbo", "Parents", DatabaseMetaData.bestRowTransaction, true), "COLUMN_NAME"));
    step("getVersionColumns", () -> columnsOf(data.getVersionColumns(null, "dbo", "Parents"), "COLUMN_NAME"));
    step("getTablePrivileges", () -> columnsOf(data.getTablePrivileges(null, "dbo", "Parents"), "PRIVILEGE").toString().contains("SELECT"));
    step("getColumnPrivileges", () -> columnsOf(data.getColumnPrivileges(null, "dbo", "Parents", "Id"), "PRIVILEGE").toString().contains("SELECT"));
    step("parameter metadata", () -> {
      try (PreparedStatement s = connection.prepareStatement("SELECT * FROM Kids WHERE A = ? AND B = ?")) {
        ParameterMetaData found = s.getParameterMetaData();
        return List.of(found.getParameterCount(), found.getParameterTypeName(1), found.getParameterTypeName(2));
      }
    });
    step("result metadata", () -> {
      try (PreparedStatement s = connection.prepareStatement("SELECT A, Note, Price FROM Kids WHERE A = ?")) {
        ResultSetMetaData found = s.getMetaData();
        return List.of(found.getColumnName(2), found.getColumnTypeName(2), found.getPrecision(3), found.getScale(3));
      }
    });
    step("catalog", () -> connection.getCatalog());
    step("version", () -> data.getDatabaseMajorVersion());
    step("updatable", () -> {
      try (Statement s = connection.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
        ResultSet r = s.executeQuery("SELECT Id, Name FROM Parents");
        r.next();
        r.updateString(2, "Bob");
        r.updateRow();
        return rows("SELECT Name FROM Parents");
      }
    });
    if (isMicrosoft)
      step("bulk copy", () -> {
        target = DriverManager.getConnection(argv[0], argv[1], argv[2]);
        return bulkCopy();
      });
    step("close", () -> { connection.close(); return connection.isClosed(); });
  }

  static Object types(boolean isMicrosoft) throws SQLException {
    try (Statement s = connection.createStatement()) {
      s.execute("CREATE TABLE Every (a bit, b tinyint, c smallint, d int, e bigint, f decimal(18,4), g money, h real, i float, j date, k time(3),"
        + " l datetime2(3), m datetime, n smalldatetime, o char(3), p varchar(20), q nvarchar(20), r varbinary(20), s uniqueidentifier, t nvarchar(max), u varbinary(max))");
    }
    try (PreparedStatement s = connection.prepareStatement("INSERT INTO Every VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")) {
      s.setBoolean(1, true); s.setInt(2, 255); s.setShort(3, (short) -3); s.setInt(4, 4); s.setLong(5, 5_000_000_000L);
      s.setBigDecimal(6, new BigDecimal("-6.0001")); s.setBigDecimal(7, new BigDecimal("7.25")); s.setFloat(8, 8.5f); s.setDouble(9, 9.25);
      s.setDate(10, Date.valueOf("2024-02-29")); s.setString(11, "12:34:56.789");
      s.setTimestamp(12, Timestamp.valueOf("2024-02-29 12:34:56.789")); s.setTimestamp(13, Timestamp.valueOf("2024-02-29 12:34:56.79"));
      s.setTimestamp(14, Timestamp.valueOf("2024-02-29 12:34:00")); s.setString(15, "ab"); s.setString(16, "é"); s.setString(17, "日本");
      s.setBytes(18, new byte[] {1, 2, (byte) 0xff}); s.setString(19, "01234567-89AB-CDEF-0123-456789ABCDEF");
      s.setString(20, "x".repeat(9_000)); s.setBytes(21, "bytes".getBytes(StandardCharsets.UTF_8));
      s.executeUpdate();
    }
    try (Statement s = connection.createStatement()) {
      ResultSet r = s.executeQuery("SELECT * FROM Every");
      r.next();
      return List.of(r.getBoolean(1), r.getInt(2), r.getShort(3), r.getInt(4), r.getLong(5), r.getBigDecimal(6).toString(), r.getBigDecimal(7).toString(),
        r.getFloat(8), r.getDouble(9), r.getString(10), r.getString(11), r.getTimestamp(12).toString(), r.getTimestamp(13).toString(), r.getTimestamp(14).toString(),
        r.getString(15), r.getString(16), r.getString(17), r.getBytes(18)[2], r.getString(19), r.getString(20).length(), r.getBytes(21).length);
    }
  }

  /** By reflection: the class is Microsoft's, and the other driver runs without it. */
  static Object bulkCopy() throws Exception {
    try (Statement s = connection.createStatement()) {
      s.execute("CREATE TABLE Loaded (A int NOT NULL, B varchar(10) NOT NULL)");
      Class<?> type = Class.forName("com.microsoft.sqlserver.jdbc.SQLServerBulkCopy");
      try (AutoCloseable copy = (AutoCloseable) type.getConstructor(Connection.class).newInstance(target)) {
        type.getMethod("setDestinationTableName", String.class).invoke(copy, "dbo.Loaded");
        type.getMethod("writeToServer", ResultSet.class).invoke(copy, s.executeQuery("SELECT A, B FROM Kids WHERE A <= 40"));
      }
      return rows("SELECT COUNT(*), MAX(A) FROM Loaded");
    }
  }

  static int count(String table) throws SQLException {
    try (Statement s = connection.createStatement()) {
      ResultSet r = s.executeQuery("SELECT COUNT(*) FROM " + table);
      r.next();
      return r.getInt(1);
    }
  }

  static List<Object> rows(String sql) throws SQLException {
    try (Statement s = connection.createStatement()) {
      return rows(s.executeQuery(sql));
    }
  }

  static List<Object> rows(ResultSet set) throws SQLException {
    List<Object> found = new ArrayList<>();
    while (set.next()) for (int i = 1; i <= set.getMetaData().getColumnCount(); i++) found.add(set.getObject(i));
    return found;
  }

  static List<Object> columnsOf(ResultSet set, String... names) throws SQLException {
    List<Object> found = new ArrayList<>();
    while (set.next()) {
      List<Object> row = new ArrayList<>();
      for (String name : names) row.add(set.getObject(name));
      found.add(row);
    }
    return found;
  }

  static void step(String name, Step step) {
    try {
      System.out.println("{\"name\":" + json(name) + ",\"value\":" + json(step.run()) + "}");
    } catch (Exception | AbstractMethodError thrown) {
      Throwable error = thrown;
      if (error instanceof java.lang.reflect.InvocationTargetException) error = error.getCause();
      int code = error instanceof SQLException ? ((SQLException) error).getErrorCode() : 0;
      System.out.println("{\"name\":" + json(name) + ",\"error\":" + json(code + " " + error.getMessage()) + "}");
    }
  }

  static String json(Object value) {
    if (value == null) return "null";
    if (value instanceof Boolean || value instanceof Number) return value.toString();
    if (value instanceof List<?> list) return "[" + String.join(",", list.stream().map(TdsJdbc::json).toList()) + "]";
    StringBuilder text = new StringBuilder("\"");
    for (char c : value.toString().toCharArray()) {
      if (c == '"' || c == '\\') text.append('\\').append(c);
      else if (c < 0x20 || c > 0x7e) text.append(String.format("\\u%04x", (int) c));
      else text.append(c);
    }
    return text.append('"').toString();
  }
}
