// Sends three messages to a queue, claims them, acknowledges two and returns one:
// java -cp postgresql.jar Worker.java <queue>
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.UUID;

public class Worker {
    public static void main(String[] args) throws Exception {
        String queue = args[0];
        var environment = System.getenv();
        var properties = new Properties();
        properties.setProperty("user", environment.get("PGUSER"));
        properties.setProperty("password", environment.get("PGPASSWORD"));
        properties.setProperty("sslmode", environment.getOrDefault("PGSSLMODE", "prefer"));
        if (environment.containsKey("PGSSLROOTCERT")) properties.setProperty("sslrootcert", environment.get("PGSSLROOTCERT"));
        String url = "jdbc:postgresql://" + environment.get("PGHOST") + ":" + environment.get("PGPORT") + "/" + environment.get("PGDATABASE");
        try (Connection connection = DriverManager.getConnection(url, properties)) {
            for (int number = 0; number < 3; number++) {
                try (PreparedStatement send = connection.prepareStatement("SELECT mdb_queue.enqueue(?, ?::jsonb)")) {
                    send.setString(1, queue);
                    send.setString(2, "{\"number\": " + number + "}");
                    send.execute();
                }
            }

            String worker = UUID.randomUUID().toString(); // one for each claim
            List<Long> done = new ArrayList<>();
            List<Long> failed = new ArrayList<>();
            try (PreparedStatement claim = connection.prepareStatement(
                    "SELECT id, payload ->> 'number' AS number FROM mdb_queue.claim(?, ?, 10)")) {
                claim.setString(1, queue);
                claim.setString(2, worker);
                ResultSet messages = claim.executeQuery();
                while (messages.next()) (messages.getInt("number") == 1 ? failed : done).add(messages.getLong("id"));
            }

            settle(connection, "SELECT id, done FROM mdb_queue.ack(?, ?, ?)", queue, worker, done, "acked");
            settle(connection, "SELECT id, done FROM mdb_queue.nack(?, ?, ?, 60, 'not yet')", queue, worker, failed, "given back");
        }
    }

    static void settle(Connection connection, String statement, String queue, String worker, List<Long> ids, String word)
            throws Exception {
        try (PreparedStatement settle = connection.prepareStatement(statement)) {
            settle.setString(1, queue);
            settle.setString(2, worker);
            settle.setArray(3, connection.createArrayOf("bigint", ids.toArray()));
            ResultSet answer = settle.executeQuery();
            while (answer.next()) System.out.println((answer.getBoolean("done") ? word : "lost") + " " + answer.getLong("id"));
        }
    }
}
