/** Initial user of every service. It inherits what a deleted user owns. */
export const defaultUser = "app_user";
/** Initial database of every PostgreSQL service. */
export const defaultDatabase = "defaultdb";
