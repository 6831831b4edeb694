-- The script of the SQLite demo. Everything follows from the numbers of a recursive query, so that
-- every build prints the same rows; no random(), no clock.
PRAGMA page_size = 1024;
PRAGMA cache_size = -32000;
PRAGMA foreign_keys = ON;

CREATE TABLE person(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  city TEXT NOT NULL,
  born INTEGER NOT NULL CHECK (born BETWEEN 1900 AND 2020),
  note TEXT
);
CREATE TABLE orders(
  id INTEGER PRIMARY KEY,
  person INTEGER NOT NULL REFERENCES person(id) ON DELETE CASCADE,
  item TEXT NOT NULL,
  amount INTEGER NOT NULL,
  detail TEXT NOT NULL
);

-- 12,000 people with notes of very different lengths.
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
INSERT INTO person
SELECT i,
       printf('%s %s-%05d', substr('AdaBobCatDanEveFayGusHal', 1 + 3 * (i % 8), 3),
              substr('StoneWaterCloudRiverField', 1 + 5 * (i % 5), 5), i),
       trim(substr('CuscoLima QuitoPuno ', 1 + 5 * (i * i % 89 % 4), 5)),
       1900 + i * i % 10007 % 121,
       CASE WHEN i % 10 = 0 THEN NULL
            ELSE replace(hex(zeroblob(i * 31 % 120)), '00', char(97 + i % 26)) END
FROM n;

-- 30,000 orders, each with a JSON text.
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
INSERT INTO orders
SELECT i, 1 + i * 2654435761 % 12000, printf('item-%d', i * i % 997), i * 7919 % 1000,
       json_object('size', i % 40, 'tags', json_array('t' || (i % 13), 't' || (i % 17)),
                   'text', upper(substr('the quick brown fox jumps', 1 + i % 20)))
FROM n;

SELECT count(*), sum(length(note)), min(name), max(name) FROM person;
SELECT count(*), sum(amount), sum(length(detail)) FROM orders;

-- Indexes: the sorter holds all keys at once.
CREATE INDEX person_by_city ON person(city, born, name);
CREATE INDEX orders_by_person ON orders(person, amount);
CREATE INDEX orders_by_tag ON orders(json_extract(detail, '$.tags[0]'), item);
ANALYZE;

-- Joins and aggregates.
SELECT p.city, count(*), sum(o.amount), round(avg(o.amount), 3)
FROM person p JOIN orders o ON o.person = p.id GROUP BY p.city ORDER BY p.city;
SELECT p.name, count(o.id) AS orders, group_concat(o.item, ',') AS items
FROM person p JOIN orders o ON o.person = p.id
GROUP BY p.id ORDER BY orders DESC, length(items) DESC, p.name LIMIT 5;
SELECT item, count(DISTINCT person), total(amount)
FROM orders GROUP BY item HAVING count(*) > 60 ORDER BY 2 DESC, 1 LIMIT 8;
SELECT name FROM person WHERE city = 'Quito' AND born BETWEEN 1950 AND 1952 ORDER BY name DESC LIMIT 4;
SELECT a.name, b.name FROM person a JOIN person b ON b.id = a.id * 2 + 1
WHERE a.born = b.born AND a.city <> b.city ORDER BY a.id LIMIT 5;

-- Text functions, one or more fresh strings for each row.
SELECT sum(length(replace(lower(name), 'stone', 'granite')) + instr(name, '-')
       + length(trim(upper(city) || '  ')) + length(printf('%08d/%s', born, city))) FROM person;
SELECT count(*), min(n) FROM (SELECT replace(name, 'a', 'aa') || '/' || reverse AS n
  FROM (SELECT name, substr(name, -5) || substr(name, 1, 3) AS reverse FROM person) ORDER BY n DESC);
SELECT length(group_concat(note, ';')), length(group_concat(DISTINCT city)) FROM person;
SELECT count(*) FROM person WHERE name GLOB '*Stone*' OR note LIKE '%bbbbbbbbbbbb%';

-- JSON: parsing allocates for each row.
SELECT json_extract(detail, '$.tags[0]') AS tag, count(*), sum(json_extract(detail, '$.size'))
FROM orders GROUP BY tag ORDER BY tag;
SELECT value, count(*) FROM orders, json_each(orders.detail, '$.tags')
WHERE orders.id <= 6000 GROUP BY value ORDER BY count(*) DESC, value LIMIT 6;
SELECT length(json_group_array(json_object('id', id, 'd', json(detail)))) FROM orders WHERE id <= 10000;
UPDATE orders SET detail = json_set(detail, '$.size', json_extract(detail, '$.size') + 1,
                                    '$.note', substr(hex(zeroblob(id % 50)), 1, id % 50))
WHERE id % 3 = 0;
SELECT sum(length(detail)), sum(json_valid(detail)) FROM orders;

-- Window functions keep partitions in memory.
SELECT city, name, r FROM (
  SELECT city, name, row_number() OVER (PARTITION BY city ORDER BY born, name) AS r,
         lag(name, 2) OVER (PARTITION BY city ORDER BY born, name) AS before FROM person)
WHERE r = 100 ORDER BY city;

-- Full-text search: many small tables inside one.
CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words(rowid, body)
SELECT id, name || ' ' || city || ' ' || printf('w%d x%d y%d', id % 211, id * 3 % 499, id * id % 1009)
FROM person WHERE id <= 4000;
SELECT count(*) FROM words WHERE words MATCH 'stone AND cusco';
SELECT rowid, snippet(words, 0, '[', ']', '...', 4) FROM words
WHERE words MATCH 'w7 OR x15' ORDER BY rank, rowid LIMIT 5;
DELETE FROM words WHERE rowid % 2 = 0;
INSERT INTO words(words) VALUES ('optimize');
SELECT count(*) FROM words WHERE words MATCH 'wat*';

-- Transactions: pages are copied, changed and given back.
BEGIN;
DELETE FROM person WHERE id % 4 = 1;
SELECT count(*) FROM person;
SELECT count(*) FROM orders;
SAVEPOINT more;
UPDATE person SET note = name || coalesce(note, ''), born = 1900 + (born + 1) % 100;
SELECT sum(length(note)), sum(born) FROM person;
ROLLBACK TO more;
SELECT sum(length(note)), sum(born) FROM person;
ROLLBACK;
SELECT count(*) FROM person;
INSERT INTO person VALUES (1, 'again', 'Lima', 1990, NULL);
INSERT INTO orders VALUES (99999, 123456, 'none', 1, '{}');

-- Deletes, new tables, and what is left.
DELETE FROM person WHERE id % 3 = 0;
CREATE TABLE copy AS SELECT * FROM orders ORDER BY item, id;
UPDATE copy SET item = item || '+' || person WHERE amount > 500;
DELETE FROM copy WHERE amount % 2 = 1;
VACUUM;
SELECT count(*), count(DISTINCT item), sum(amount) FROM copy;
SELECT count(*), (SELECT count(*) FROM orders) FROM person;
WITH RECURSIVE tree(id, depth, path) AS (
  SELECT 1, 0, '1' UNION ALL
  SELECT id * 2 + k, depth + 1, path || '.' || (id * 2 + k)
  FROM tree, (SELECT 0 AS k UNION ALL SELECT 1) WHERE depth < 11)
SELECT depth, count(*), max(length(path)), max(path) FROM tree GROUP BY depth ORDER BY depth;
PRAGMA integrity_check;
DROP TABLE copy;
DROP TABLE words;
DROP TABLE orders;
SELECT type, name FROM sqlite_schema ORDER BY name;
