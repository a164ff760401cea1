-- Four updates of one artwork; the last one moves it to another partition.
update artworks set title = 'Dreams of a plate' where artwork_id = 128;
update artworks set date = 1971, medium = 'Etching' where artwork_id = 128;
update artworks set credit = 'Gift of a friend' where artwork_id = 128;
update artworks set classification = 'Illustrated Book' where artwork_id = 128;
