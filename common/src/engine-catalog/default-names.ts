/** Initial user of every service. It inherits what a deleted user owns. */
export const defaultUser = "app_user";
/** Initial database of every PostgreSQL service. */
export const defaultDatabase = "defaultdb";
/**
 * Second database of every new PostgreSQL service: clients connect to it to create others, such as
 * `pg_restore --create`. Users may drop it.
 */
export const maintenanceDatabase = "postgres";
