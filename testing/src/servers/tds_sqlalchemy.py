"""Steps of SQLAlchemy with pymssql on a front end of T-SQL: creation, introspection, changes of rows."""
import datetime, json, os, uuid

import pymssql
import sqlalchemy as sa
from sqlalchemy import orm

target = json.loads(os.environ["TDS_TARGET"])


def connect():
    # FreeTDS reads the certificate authority of the server `holdfast` from the file of FREETDSCONF.
    return pymssql.connect(server="holdfast", port=str(target["port"]), user=target["user"], password=target["password"], database=target["database"])


engine = sa.create_engine("mssql+pymssql://", creator=connect)


def step(name, run):
    """Runs a step and prints its value or its error as a line of JSON."""
    try:
        print(json.dumps({"name": name, "value": str(run())}))
    except Exception as error:
        print(json.dumps({"name": name, "error": f"{type(error).__name__} {error}"[:1000]}))


def rows(statement):
    with orm.Session(engine) as session:
        return session.execute(statement).all()


class Base(orm.DeclarativeBase): pass
class Author(Base):
    __tablename__ = "authors"
    id = sa.Column(sa.Integer, primary_key=True); name = sa.Column(sa.Unicode(50), unique=True, nullable=False)
    rating = sa.Column(sa.Numeric(10, 2), server_default="1.5"); active = sa.Column(sa.Boolean, default=True)
    born = sa.Column(sa.Date); at = sa.Column(sa.DateTime); uid = sa.Column(sa.Uuid, default=uuid.uuid4); data = sa.Column(sa.LargeBinary); notes = sa.Column(sa.UnicodeText); j = sa.Column(sa.JSON); clock = sa.Column(sa.Time)
    books = orm.relationship("Book", back_populates="author")
class Book(Base):
    __tablename__ = "books"
    id = sa.Column(sa.Integer, primary_key=True); title = sa.Column(sa.Unicode(100), index=True); pages = sa.Column(sa.Integer, sa.CheckConstraint("pages > 0", name="positive_pages")); price = sa.Column(sa.Float)
    author_id = sa.Column(sa.ForeignKey("authors.id", ondelete="CASCADE")); author = orm.relationship(Author, back_populates="books")

step("create", lambda: Base.metadata.create_all(engine))
step("create again", lambda: Base.metadata.create_all(engine))
i = None
def inspect():
    global i; i = sa.inspect(engine); return i.get_table_names(), i.get_schema_names()
step("inspect", inspect)
step("columns", lambda: [(c["name"], str(c["type"]), c["nullable"], c.get("identity"), c["default"]) for c in i.get_columns("authors")])
step("pk", lambda: i.get_pk_constraint("authors"))
step("fks", lambda: i.get_foreign_keys("books"))
step("indexes", lambda: i.get_indexes("books"))
step("unique", lambda: i.get_indexes("authors"))
step("checks", lambda: i.get_check_constraints("books"))
step("comment", lambda: i.get_table_comment("books"))
step("views", lambda: i.get_view_names())
step("temp", lambda: i.get_temp_table_names())
def reflect():
    metadata = sa.MetaData()
    metadata.reflect(engine)
    return sorted(metadata.tables)
step("reflect", reflect)
step("has_table", lambda: (i.has_table("authors"), i.has_table("none"), i.has_table("#none")))
def crud():
    with orm.Session(engine) as s:
        a = Author(name="Ann é 日本", born=datetime.date(2000, 1, 31), at=datetime.datetime(2026, 1, 31, 12, 0, 0, 123000), data=b"\x00\xff", notes="x" * 9000, j={"a": [1]}, clock=datetime.time(13, 14, 15))
        a.books = [Book(title=f"t{n}", pages=n + 1, price=1.5) for n in range(30)]
        s.add(a); s.commit()
        return a.id, a.rating, a.uid, a.books[0].id, a.j, a.at, a.clock, a.data
step("crud", crud)
step("query", lambda: rows(sa.select(Author.name, sa.func.count(Book.id)).join(Book).group_by(Author.name)))
step("limit", lambda: rows(sa.select(Book.title).order_by(Book.id).limit(2).offset(3)))
step("join eager", lambda: len(rows(sa.select(Author).options(orm.selectinload(Author.books)))[0][0].books))
step("window", lambda: rows(sa.select(Book.id, sa.func.row_number().over(order_by=Book.id.desc())).limit(2)))
step("cte", lambda: rows(sa.select(sa.func.count()).select_from(sa.select(Book).where(Book.pages > 20).cte("c"))))
def bulk():
    with engine.begin() as c: return c.execute(sa.insert(Book).returning(Book.id, sort_by_parameter_order=True), [{"title": f"b{n}", "pages": 5} for n in range(50)]).all()[-1]
step("insertmany", bulk)
def upd():
    with orm.Session(engine) as s: r = s.execute(sa.update(Book).where(Book.title == "t1").values(pages=Book.pages + 10).returning(Book.pages)).all(); s.commit(); return r
step("update returning", upd)
step("delete returning", lambda: rows(sa.delete(Book).where(Book.title == "t2").returning(Book.id)))
def many():
    with engine.begin() as c: return c.execute(sa.insert(Book), [{"title": f"m{n}", "pages": 5} for n in range(100)]).rowcount
step("executemany", many)
def unique():
    try:
        with engine.begin() as c: c.execute(sa.insert(Author), {"name": "ANN é 日本"})
    except sa.exc.IntegrityError as e: return "IntegrityError", str(e.orig)[:200]
step("unique error", unique)
def savepoint():
    with engine.begin() as c:
        n = c.begin_nested(); c.execute(sa.delete(Book)); n.rollback(); return c.execute(sa.select(sa.func.count()).select_from(Book)).scalar()
step("savepoint", savepoint)
def isolation():
    with engine.connect() as connection:
        return connection.execution_options(isolation_level="SERIALIZABLE").get_isolation_level()
step("isolation", isolation)
def ident():
    with engine.begin() as c: c.execute(sa.insert(Author), {"id": 500, "name": "five"}); return c.execute(sa.select(Author.id).where(Author.name == "five")).scalar()
step("identity insert", ident)
def temp():
    with engine.begin() as c: c.exec_driver_sql("CREATE TABLE #t (a int)"); c.exec_driver_sql("INSERT INTO #t VALUES (1)"); return c.exec_driver_sql("SELECT * FROM #t").all()
step("temp", temp)
def comments():
    m = sa.MetaData(); sa.Table("commented", m, sa.Column("id", sa.Integer, comment="the id"), comment="a table"); m.create_all(engine); r = sa.inspect(engine).get_table_comment("commented"); m.drop_all(engine); return r
step("comments", comments)
def sequence():
    metadata = sa.MetaData()
    sa.Table("seq", metadata, sa.Column("id", sa.Integer, sa.Sequence("some_seq", start=5), primary_key=True))
    metadata.create_all(engine)
    metadata.drop_all(engine)
step("sequence", sequence)
def schema():
    with engine.begin() as c: c.execute(sa.schema.CreateSchema("other")); c.execute(sa.schema.DropSchema("other"))
step("schema", schema)
step("drop", lambda: Base.metadata.drop_all(engine))
