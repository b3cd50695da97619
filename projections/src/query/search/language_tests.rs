//! How many of 15 memories are among the first five hits for a question in other words, by
//! language.

use super::Search;
use crate::{Store, test_log::TestLog};
use claude_mem_events::{Event, MemoryAdded};

/// Memories, each with a question.
type Set = [(&'static str, &'static str); 15];

const GERMAN: Set = [
    (
        "Der Anmelde-Endpunkt erlaubt pro IP-Adresse fünf Versuche je Minute, danach antwortet er \
         mit 429.",
        "Wie verhindern wir, dass sich jemand zu oft anzumelden versucht?",
    ),
    (
        "Die Sicherung der Datenbank läuft nachts um drei und behält sieben Stände.",
        "Wie viele alte Backups der Datenbank haben wir?",
    ),
    (
        "Zeitstempel werden immer in UTC gespeichert und erst im Browser umgerechnet.",
        "In welcher Zeitzone liegen Uhrzeiten in den Tabellen?",
    ),
    (
        "Bilder werden beim Hochladen auf 1600 Pixel verkleinert, um Speicher zu sparen.",
        "Warum sind hochgeladene Fotos kleiner als das Original?",
    ),
    (
        "Der Zahlungsdienst bricht nach zehn Sekunden ab; wir versuchen es dreimal mit wachsendem \
         Abstand.",
        "Was passiert, wenn die Zahlung eine Zeitüberschreitung hat?",
    ),
    (
        "Tests laufen nur mit der Umgebungsvariablen APP_ENV=test, sonst löschen sie echte Daten.",
        "Wie starte ich die Tests gefahrlos?",
    ),
    (
        "Die Suche nutzt FTS5, weil ein eigener Suchserver für kleine Installationen zu schwer \
         ist.",
        "Weshalb haben wir uns gegen Elasticsearch entschieden?",
    ),
    (
        "Feature-Schalter liegen in der Tabelle flags und werden 60 Sekunden zwischengespeichert.",
        "Warum greift ein umgelegter Schalter erst nach einer Minute?",
    ),
    (
        "Rechnungen bekommen fortlaufende Nummern ohne Lücken, das verlangt das Finanzamt.",
        "Dürfen Rechnungsnummern übersprungen werden?",
    ),
    (
        "Der Build scheitert mit Node 18, weil ein Paket mindestens Version 20 braucht.",
        "Welche Version von Node brauchen wir?",
    ),
    (
        "Passwörter werden mit Argon2id gehasht, bcrypt wurde wegen der 72-Byte-Grenze ersetzt.",
        "Womit speichern wir Kennwörter?",
    ),
    (
        "Der Speicherverlust im Worker kam von Zuhörern, die nie abgemeldet wurden.",
        "Warum wuchs der Worker immer weiter?",
    ),
    (
        "Lange Migrationen laufen getrennt vom Deployment, damit die Tabelle nicht gesperrt wird.",
        "Wie ändern wir große Tabellen ohne Ausfall?",
    ),
    (
        "Fehlermeldungen an Kunden enthalten nie Stapelspuren, nur eine Kennung für das Protokoll.",
        "Was dürfen Nutzer von einem internen Fehler sehen?",
    ),
    (
        "Der Warenkorb wird nach dreißig Tagen ohne Änderung gelöscht.",
        "Wie lange bleiben verlassene Einkaufswagen erhalten?",
    ),
];

const CHINESE: Set = [
    ("登录接口限制每个IP每分钟最多尝试五次，超过后返回429。", "怎样防止有人频繁登录？"),
    ("数据库每天凌晨三点备份，保留最近七份。", "我们有几份旧的数据库备份？"),
    ("时间戳一律以UTC存储，在浏览器里才转换成本地时间。", "表里的时间用的是哪个时区？"),
    ("图片上传时会压缩到1600像素以节省空间。", "为什么上传的照片变小了？"),
    ("支付网关十秒超时，之后按递增间隔重试三次。", "付款超时了会怎么处理？"),
    ("测试必须设置APP_ENV=test，否则会删除真实数据。", "怎么安全地运行测试？"),
    (
        "搜索使用FTS5，因为小型部署不值得单独维护搜索服务器。",
        "当初为什么没有采用Elasticsearch做搜索？",
    ),
    ("功能开关存放在flags表中，缓存六十秒。", "改了开关为什么要等一分钟才生效？"),
    ("发票编号必须连续且不能有空缺，这是税务要求。", "发票号可以跳过吗？"),
    ("用Node 18构建会失败，因为有个依赖至少需要20版本。", "构建需要哪个Node版本？"),
    ("图片上传后会压缩成WebP，因为移动网络较慢。", "上传的图片为什么会变小？"),
    ("后台进程的内存泄漏来自从未注销的监听器。", "为什么进程占用的内存一直增长？"),
    ("耗时的迁移与发布分开执行，以免锁表。", "大表结构迁移怎样不停机？"),
    ("给客户的错误信息不含堆栈，只有一个日志编号。", "内部出错时客户能看到什么信息？"),
    ("购物车三十天没有变动就会被清除。", "被遗弃的购物车会保留多久？"),
];

const JAPANESE: Set = [
    (
        "ログインAPIは同じIPからの試行を1分間に5回までに制限し、超えると429を返す。",
        "何度もログインを試すのをどう防いでいますか？",
    ),
    (
        "データベースは毎晩3時にバックアップし、7世代を残す。",
        "古いバックアップはいくつありますか？",
    ),
    (
        "タイムスタンプは必ずUTCで保存し、ブラウザで変換する。",
        "保存される時刻はどのタイムゾーンですか？",
    ),
    (
        "画像はアップロード時に1600ピクセルへ縮小して容量を節約する。",
        "なぜアップロードした写真が小さくなるのですか？",
    ),
    (
        "決済サービスは10秒でタイムアウトし、間隔を広げながら3回再試行する。",
        "決済が時間切れになったらどうなりますか？",
    ),
    (
        "テストはAPP_ENV=testでのみ実行する。そうしないと本番データが消える。",
        "安全にテストを実行するには？",
    ),
    (
        "小さな環境に検索サーバーは重すぎるため、検索にはFTS5を使う。",
        "なぜElasticsearchで検索しなかったのですか？",
    ),
    (
        "機能フラグはflagsテーブルにあり、60秒キャッシュされる。",
        "フラグを変えてもすぐ反映されないのはなぜ？",
    ),
    (
        "請求書番号は欠番なしの連番でなければならない。税務上の要件である。",
        "請求書の番号を飛ばしてもいいですか？",
    ),
    (
        "ある依存がバージョン20以上を要求するため、Node 18ではビルドが失敗する。",
        "ビルドに必要なNodeのバージョンは？",
    ),
    (
        "モバイル回線が遅いため、画像はアップロード後にWebPへ圧縮する。",
        "アップロードした画像はなぜ小さくなりますか？",
    ),
    (
        "ワーカーのメモリリークは解除されないリスナーが原因だった。",
        "ワーカーのメモリが増え続けた理由は？",
    ),
    (
        "時間のかかるマイグレーションはデプロイと分けて行い、テーブルのロックを避ける。",
        "大きなテーブルを止めずに変更するには？",
    ),
    (
        "顧客へのエラーメッセージにスタックトレースは含めず、ログの番号だけを示す。",
        "内部エラーのとき顧客には何が見えますか？",
    ),
    ("カートは30日間変更がないと削除される。", "放置されたカートはいつまで残りますか？"),
];

const KOREAN: [(&str, &str); 3] = [
    ("로그인 시도는 분당 다섯 번으로 제한된다.", "로그인을 너무 자주 하는 것을 어떻게 막나요?"),
    ("데이터베이스는 매일 새벽 세 시에 백업한다.", "백업은 언제 하나요?"),
    ("장바구니는 30일 동안 변경이 없으면 삭제된다.", "버려진 장바구니는 언제까지 남나요?"),
];

fn store_of(texts: &[(&str, &str)]) -> Store {
    let mut scene = TestLog::new();
    for (text, _) in texts {
        let text = (*text).to_owned();
        scene.add(Event::MemoryAdded(MemoryAdded { text, ..MemoryAdded::default() }));
    }
    scene.fold()
}

/// How many memories are among the first `limit` hits for their question.
fn found(set: &[(&str, &str)], limit: usize) -> usize {
    let store = store_of(set);
    let is_found = |(at, (_, question)): (usize, &(&str, &str))| {
        let search = Search { query: (*question).into(), limit, ..Search::default() };
        store.search(&search).unwrap().hits.iter().any(|hit| hit.name.id == at as i64 + 1)
    };
    set.iter().enumerate().filter(|one| is_found(*one)).count()
}

#[test]
fn questions_in_other_languages_find_memories_by_their_words() {
    let found = [found(&GERMAN, 5), found(&CHINESE, 5), found(&JAPANESE, 5), found(&KOREAN, 1)];
    let wanted = [5, 13, 13, 3];
    assert!(found.iter().zip(wanted).all(|(found, wanted)| *found >= wanted), "{found:?}");
}

#[test]
fn words_without_a_space_between_scripts_are_found() {
    let store = store_of(&[("使用Redis缓存会话，见readReply。", ""), ("Rustの記憶は速い", "")]);
    for (query, expected) in [
        ("redis", 1),
        ("Redis缓存", 1),
        ("read reply", 1),
        ("会话", 1),
        ("rust", 2),
        ("速い", 2),
        ("\"Rustの記憶\"", 2),
    ] {
        let search = Search { query: query.into(), ..Search::default() };
        let hits = store.search(&search).unwrap().hits;
        let ids: Vec<i64> = hits.iter().map(|hit| hit.name.id).collect();
        assert_eq!(ids, [expected], "{query}");
    }
}
