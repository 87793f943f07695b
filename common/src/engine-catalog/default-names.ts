/** User that every service is made with, and who gets what users leave behind that go. */
export const defaultUser = "app_user";
/** Database that every PostgreSQL is made with. */
export const defaultDatabase = "defaultdb";
