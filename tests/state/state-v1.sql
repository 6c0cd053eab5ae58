-- The state of a small workspace as schema version 1 kept it; see test_upgrade.py.
BEGIN TRANSACTION;
CREATE TABLE approval(id TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, digest TEXT NOT NULL, revision TEXT NOT NULL, rule TEXT, state TEXT NOT NULL,
    scope TEXT, pattern TEXT, until REAL, reason TEXT, decided_by TEXT, asked REAL NOT NULL, decided REAL,
    request TEXT NOT NULL);
INSERT INTO "approval" VALUES('a-01c6b47d6a1aaeeb','coder','s-old','delete','c130af6fc8e0127997875455c0ffe65518013a5bb9f2d0e9ec91f586ef0bb125','26f530b2e392ab5ee3065f53245f7e47f540263e78ec1e02e779e14987a51cb7','697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355','["global", null, "delete", "asked/*", 2, "<string>"]','pending',NULL,NULL,NULL,NULL,NULL,1.79584948061646723746e+09,NULL,'{"id": "a-01c6b47d6a1aaeeb", "agent": "coder", "session": "s-old", "tool": "delete", "arguments": {"path": "asked/x"}, "digest": "26f530b2e392ab5ee3065f53245f7e47f540263e78ec1e02e779e14987a51cb7", "revision": "697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355", "title": "Delete file asked/x (7 B)", "preview": "--- a/asked/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-ask me\n", "decision": {"effect": "ask", "action": "delete", "path": "asked/x", "rule": {"file": "<string>", "line": 2, "tier": "global", "agent": null, "key": "delete", "pattern": "asked/*", "reason": null}, "reason": "global rule delete: \"asked/*\" says ask (<string>:2)", "hint": "a person has to grant this; send the same call again once it is granted"}, "paths": ["asked/x"], "description": "", "asked": 1795849480.6164672, "state": "pending", "reason": "", "scope": "once", "pattern": null, "until": null}');
CREATE TABLE audit(seq INTEGER PRIMARY KEY, body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL);
INSERT INTO "audit" VALUES(1,'{"agent":"coder","approval":null,"call":"c-d82f9657c95e","decision":{"action":"write","effect":"allow","hint":"","path":"note.txt","reason":"global rule *: \"*\" says allow (<string>:2)","rule":{"agent":null,"file":"<string>","key":"*","line":2,"pattern":"*","reason":null,"tier":"global"}},"digest":"15688b57067f88a6e8743af8c2cb1f7649f569bc24614ee0959797a9d5bbc63f","durable":false,"event":"call","files":1,"freed":0,"id":"create_file","mode":"enforce","outcome":"done","paths":["note.txt"],"policy":"697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355","reason":null,"seconds":0.138448,"seq":1,"session":"s-old","status":"ok","time":1795849480.4339852,"tool":"create_file","written":4}','0000000000000000000000000000000000000000000000000000000000000000','14bd36df66989f09723c26833e2e811329878c73a05afa0a488cb4c65886efc4');
INSERT INTO "audit" VALUES(2,'{"agent":"coder","approval":null,"call":"c-f25519d26b50","decision":{"action":"read","effect":"allow","hint":"","path":"note.txt","reason":"global rule *: \"*\" says allow (<string>:2)","rule":{"agent":null,"file":"<string>","key":"*","line":2,"pattern":"*","reason":null,"tier":"global"}},"digest":"f02fd2b78cf78619ee6c8afbd88d20aa9a8c39d382bc0007a483abbef8222aca","durable":false,"event":"call","files":1,"freed":0,"id":"edit_file","mode":"enforce","outcome":"done","paths":["note.txt"],"policy":"697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355","reason":null,"seconds":0.014882,"seq":2,"session":"s-old","status":"ok","time":1795849480.5727296,"tool":"edit_file","written":4}','14bd36df66989f09723c26833e2e811329878c73a05afa0a488cb4c65886efc4','4188de05e86197c1aab4607ef167764c832b0121292dc14ceae7a2b1ebdfcf47');
INSERT INTO "audit" VALUES(3,'{"agent":"coder","approval":null,"call":"c-33f3ddb746bd","decision":{"action":"read","effect":"allow","hint":"","path":"note.txt","reason":"global rule *: \"*\" says allow (<string>:2)","rule":{"agent":null,"file":"<string>","key":"*","line":2,"pattern":"*","reason":null,"tier":"global"}},"digest":"cd2fc1bb0edd481b870471ef23c80ee64522157a7360214881436a2bee650ed4","durable":false,"event":"call","files":2,"freed":4,"id":"move_file","mode":"enforce","outcome":"done","paths":["note.txt","moved.txt"],"policy":"697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355","reason":null,"seconds":0.003549,"seq":3,"session":"s-old","status":"ok","time":1795849480.5878403,"tool":"move_file","written":4}','4188de05e86197c1aab4607ef167764c832b0121292dc14ceae7a2b1ebdfcf47','26ba8bb867a5a140709f4d7fa35a5f0baa4e11972add097c184601be2268260a');
INSERT INTO "audit" VALUES(4,'{"agent":"coder","approval":null,"call":"c-01da18b39749","decision":{"action":"delete","effect":"allow","hint":"","path":"tree","reason":"global rule delete: \"*\" says allow (<string>:2)","rule":{"agent":null,"file":"<string>","key":"delete","line":2,"pattern":"*","reason":null,"tier":"global"}},"digest":"73c870938c2e0396b10649b752d8d9ab1bcb4140aed198f81062db6485de1b1f","durable":false,"event":"call","files":2,"freed":202,"id":"delete","mode":"enforce","outcome":"done","paths":["tree"],"policy":"697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355","reason":null,"seconds":0.019887,"seq":4,"session":"s-old","status":"ok","time":1795849480.595775,"tool":"delete","written":0}','26ba8bb867a5a140709f4d7fa35a5f0baa4e11972add097c184601be2268260a','caf1db415fc40a978efae014f9b6d1b8464143038a0283c1a34f0a7a7cbdf324');
INSERT INTO "audit" VALUES(5,'{"agent":"coder","approval":"a-01c6b47d6a1aaeeb","by":"","digest":"26f530b2e392ab5ee3065f53245f7e47f540263e78ec1e02e779e14987a51cb7","event":"approval","outcome":"asked","pattern":null,"policy":"697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355","reason":"","scope":null,"seq":5,"session":"s-old","time":1795849480.6167686,"tool":"delete","until":null}','caf1db415fc40a978efae014f9b6d1b8464143038a0283c1a34f0a7a7cbdf324','98b44217106d2ba8d3d7c4e6962be9329aa22b806f99ffcfe025eeebe8812c08');
INSERT INTO "audit" VALUES(6,'{"agent":"coder","approval":"a-01c6b47d6a1aaeeb","call":"c-c600b45e97c2","decision":{"action":"delete","effect":"ask","hint":"a person has to grant this; send the same call again once it is granted","path":"asked/x","reason":"global rule delete: \"asked/*\" says ask (<string>:2)","rule":{"agent":null,"file":"<string>","key":"delete","line":2,"pattern":"asked/*","reason":null,"tier":"global"}},"digest":"26f530b2e392ab5ee3065f53245f7e47f540263e78ec1e02e779e14987a51cb7","durable":false,"event":"call","files":0,"freed":0,"id":"delete","mode":"enforce","outcome":"approval_required","paths":["asked/x"],"policy":"697744f8489edeaf14ffdcfa38bf6c3eadffbbdb421b59470922631a43131355","reason":null,"seconds":0.009629,"seq":6,"session":"s-old","status":"approval_required","time":1795849480.615932,"tool":"delete","written":0}','98b44217106d2ba8d3d7c4e6962be9329aa22b806f99ffcfe025eeebe8812c08','f7a273d91364d04f78ab81ec2ccd2402b4563b891dd34fe4e28baa41724b1ab4');
CREATE TABLE blob(hash TEXT PRIMARY KEY, size INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL);
INSERT INTO "blob" VALUES('2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806',4,0,X'6F6E650A');
INSERT INTO "blob" VALUES('27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a',4,0,X'74776F0A');
INSERT INTO "blob" VALUES('87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7',2,0,X'610A');
INSERT INTO "blob" VALUES('695633dfacd9f64ee8d619fd2baee8fb3cb22f9fc26b0ee1ea3a5f5fa5fbfcd3',200,1,X'78014BE24A1A161000A2C02A31');
INSERT INTO "blob" VALUES('33e623c53d058beb8a114d77d3daf2a01fecf43dc046b127be206c37fcdf5362',10,0,X'68616C6620646F6E650A');
CREATE TABLE item(op INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, path2 TEXT,
    type TEXT NOT NULL, before TEXT, after TEXT, mode INTEGER, target TEXT, size INTEGER, grown INTEGER,
    identity TEXT, temporary TEXT, state TEXT NOT NULL, PRIMARY KEY(op, n));
INSERT INTO "item" VALUES(1,0,'write','note.txt',NULL,'file',NULL,'2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806',NULL,NULL,0,4,'','.ringfence-d209973b9861e32c','done');
INSERT INTO "item" VALUES(2,0,'write','note.txt',NULL,'file','2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806','27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a',420,NULL,4,4,'2416882:1795849480572205335:1795849480572205335','.ringfence-94ae7cf97ee2a862','done');
INSERT INTO "item" VALUES(3,0,'move','note.txt','moved.txt','file',NULL,'27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a',NULL,NULL,0,4,'2416898:1795849480582017736:1795849480582017736',NULL,'done');
INSERT INTO "item" VALUES(4,0,'delete','tree',NULL,'directory',NULL,NULL,493,NULL,0,0,'2433396:1795849480375671978:1795849480375671978','.ringfence-c1abb7e4ac31e1ff','done');
INSERT INTO "item" VALUES(4,1,'delete','tree/a',NULL,'file','87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7',NULL,420,NULL,2,0,'2433411:1795849480375732588:1795849480375732588','.ringfence-c1abb7e4ac31e1ff','done');
INSERT INTO "item" VALUES(4,2,'delete','tree/deep',NULL,'directory',NULL,NULL,493,NULL,0,0,'2441331:1795849480375732588:1795849480375732588','.ringfence-c1abb7e4ac31e1ff','done');
INSERT INTO "item" VALUES(4,3,'delete','tree/deep/b',NULL,'file','695633dfacd9f64ee8d619fd2baee8fb3cb22f9fc26b0ee1ea3a5f5fa5fbfcd3',NULL,420,NULL,200,0,'2441563:1795849480375773719:1795849480375773719','.ringfence-c1abb7e4ac31e1ff','done');
INSERT INTO "item" VALUES(5,0,'delete','half',NULL,'file','33e623c53d058beb8a114d77d3daf2a01fecf43dc046b127be206c37fcdf5362',NULL,420,NULL,10,0,'','.ringfence-0123456789abcdef','pending');
CREATE TABLE op(id INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL, given TEXT, session TEXT NOT NULL,
    owner TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, started REAL NOT NULL, state TEXT NOT NULL,
    durable INTEGER NOT NULL, reason TEXT, undoes TEXT);
INSERT INTO "op" VALUES(1,'c-d82f9657c95e','create_file','s-old','78942c77182155e6','coder','create_file',1.79584948057191133496e+09,'done',0,NULL,NULL);
INSERT INTO "op" VALUES(2,'c-f25519d26b50','edit_file','s-old','78942c77182155e6','coder','edit_file',1.79584948058469295504e+09,'done',0,NULL,NULL);
INSERT INTO "op" VALUES(3,'c-33f3ddb746bd','move_file','s-old','78942c77182155e6','coder','move_file',1.79584948059106469151e+09,'done',0,NULL,NULL);
INSERT INTO "op" VALUES(4,'c-01da18b39749','delete','s-old','78942c77182155e6','coder','delete',1.79584948060599446303e+09,'done',0,NULL,NULL);
INSERT INTO "op" VALUES(5,'c-open','open','s-old','','coder','delete_file',1.79584948062579894062e+09,'pending',0,NULL,NULL);
CREATE TABLE seen(session TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY(session, path))
    WITHOUT ROWID;
INSERT INTO "seen" VALUES('s-old','moved.txt','27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a');
INSERT INTO "seen" VALUES('s-old','note.txt','gone');
INSERT INTO "seen" VALUES('s-old','tree','gone');
INSERT INTO "seen" VALUES('s-old','tree/a','gone');
INSERT INTO "seen" VALUES('s-old','tree/deep','gone');
INSERT INTO "seen" VALUES('s-old','tree/deep/b','gone');
CREATE TABLE usage(op INTEGER NOT NULL, action TEXT NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY(op, action)) WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,'write',1,4);
INSERT INTO "usage" VALUES(2,'write',1,4);
INSERT INTO "usage" VALUES(3,'delete',1,4);
INSERT INTO "usage" VALUES(3,'write',1,4);
INSERT INTO "usage" VALUES(4,'delete',2,202);
CREATE INDEX op_call ON op(call);
CREATE INDEX op_session ON op(session, id);
CREATE INDEX op_pending ON op(owner) WHERE state = 'pending';
CREATE INDEX item_path ON item(path, op);
CREATE INDEX item_path2 ON item(path2, op) WHERE path2 IS NOT NULL;
CREATE INDEX item_busy ON item(path) WHERE state = 'pending';
CREATE INDEX approval_call ON approval(session, agent, tool, state);
INSERT INTO "sqlite_sequence" VALUES('op',5);
COMMIT;
PRAGMA user_version=1;
