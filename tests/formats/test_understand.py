# ruff: noqa: E501 - tables with a case on each line
"""Files of rows: what fits a definition as a whole is read; everything else stops, with options."""

import pytest

from recordgen.errors import NotUnderstoodError
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile, Samples
from recordgen.formats.row_reader import preview_files
from recordgen.formats.source import open_source
from recordgen.options import make_options
from tests.conftest import ROOT
from tests.formats.sources import Reading, refusal, write_files

ROWS = 12
MANY = ",".join(f"x{number}" for number in range(3_000))
TURNS = f"1,{MANY},M\n1,{MANY},B\n1,{MANY},B\n".replace("x", ".")

# lines of a file, its task, and the first row: split, subject and annotation
# fmt: off
READ = [
    ('a.jpg,cat', 'image_classification', "(assigned) | a.jpg | 'cat'"),
    ('gs://b/my photo.jpg,cat', 'image_classification', "(assigned) | gs://b/my photo.jpg | 'cat'"),
    ('TRAIN,gs://b/photo,cat,dog', 'image_multi_label', "train | gs://b/photo | 'cat', 'dog'"),
    ('a.jpg,cat,.1,.2,,,.5,.6,,', 'object_detection', '(assigned) | a.jpg | 1 cat at 0.1,0.2–0.5,0.6'),
    ('a.jpg', 'image_classification', '(assigned) | a.jpg | '),
    ('a.jpg,x\nb.jpg,x,y', 'image_multi_label', "(assigned) | a.jpg | 'x'"),
    ('a.jpg,1,2,3,4,5,6,7,8,9', 'image_multi_label', "(assigned) | a.jpg | '1', '2', '3', '4', '5', '6', '7', '8', '9'"),
    ('a.jpg\nb.jpg,x,.1,.2,,,.3,.4,,', 'object_detection', '(assigned) | a.jpg | '),
    ('a.jpg,x,1,0,,,9,400,,', 'object_detection', 'no rows'),
    ('a.jpg,x,10,20,50,20,50,60,10,60', 'object_detection', 'no rows'),
    ('a.jpg,x,.1,nan,,,.3,.4,,', 'object_detection', 'no rows'),
    ('a.jpg,x,0,0,1,0,1,1,0,1', 'object_detection', '(assigned) | a.jpg | 1 x at 0,0–1,1'),
    ('image,label,xmin,ymin,xmax,ymax\na', 'object_detection', '(assigned) | a | '),
    ('\nxmin,image,label,ymin,xmax,ymax\n,a', 'object_detection', '(assigned) | a | '),
    ('image,label,label\na,b,c', 'image_multi_label', "(assigned) | a | 'b', 'c'"),
    ('TRAIN,Good and cheap.,praise', 'text_classification', "train | Good and cheap. | 'praise'"),
    ('\ngs://b/1.txt,praise', 'text_classification', "(assigned) | gs://b/1.txt | 'praise'"),
    ('"Good, and cheap",praise,price', 'text_multi_label', "(assigned) | Good, and cheap | 'praise', 'price'"),
    ('review,sentiment\nGood and cheap,good', 'text_classification', "(assigned) | Good and cheap | 'good'"),
    ('review,sentiment\nGood and cheap,4', 'text_sentiment', "(assigned) | Good and cheap | '4'"),
    ('text,label\nGood and cheap,4', 'text_classification', "(assigned) | Good and cheap | '4'"),
    ('TRAIN,gs://b/My Photos/1 a b c,cat', 'image_classification', "train | gs://b/My Photos/1 a b c | 'cat'"),
    ('https://h/my image.jpg?w=1,cat', 'image_classification', "(assigned) | https://h/my image.jpg?w=1 | 'cat'"),
    ('image_id,label\nimg0,0\nimg1,1', 'image_classification', "(assigned) | img0 | '0'"),
    ('text,label,label_text\nGood,1,praise', 'text_classification', "(assigned) | Good | 'praise'"),
    ('label_text,image,label\ncat,a.jpg,3', 'image_classification', "(assigned) | a.jpg | 'cat'"),
    ('TRAIN,gs://b/list.csv', 'video_classification', 'no rows'),
    ('a.mp4,1\nb.mp4,run', 'video_classification', "(assigned) | a.mp4 | '1' from 0 s to the end"),
    ('a.mp4,car,1,inf', 'video_classification', "(assigned) | a.mp4 | 'car' from 1 s to the end"),
    ('uri,label,start,end\na,car,1,2', 'video_classification', "(assigned) | a | 'car' from 1 s to 2 s"),
    (',text,label\n0,Good and cheap,2', 'text_classification', "(assigned) | Good and cheap | '2'"),
    ('text,label,,\nGood and cheap,2,,', 'text_classification', "(assigned) | Good and cheap | '2'"),
    ('a.jpg,cat,"0,1","0,2",,,"0,5","0,6",,', 'object_detection', 'no rows'),
    ('a.jpg,a,b,c,,,d,e', 'image_multi_label', "(assigned) | a.jpg | 'a', 'b', 'c', 'd', 'e'"),
    ('"Hello, how are you?","I am fine."', 'text_classification', "(assigned) | Hello, how are you? | 'I am fine.'"),
    ('TRAIN,"Hello you there","I am fine."', 'text_classification', "train | Hello you there | 'I am fine.'"),
    ('TRAIN,http://[a,cat', 'image_classification', "train | http://[a | 'cat'"),
    ('filepaths,labels\nx/1.jpg,cat', 'image_classification', "(assigned) | x/1.jpg | 'cat'"),
    ('video_path,label\n1.mp4,run', 'video_classification', "(assigned) | 1.mp4 | 'run' from 0 s to the end"),
    ('image_name,label_name,x1,y1,x2,y2\na.jpg,dog,0,.1,.1,.2', 'object_detection', '(assigned) | a.jpg | 1 dog at 0,0.1–0.1,0.2'),
    ('text_path,label\n1.txt,good', 'text_classification', "(assigned) | 1.txt | 'good'"),
    ('test,gs://b/1.jpg,a\ngs://b/3.png\ngs://b/4.bmp,b', 'image_classification', "test | gs://b/1.jpg | 'a'"),
    ('TRAIN,gs://b/1.jpg,a\ngs://b/2.jpg,b,c\ngs://b/3.jpg', 'image_multi_label', "train | gs://b/1.jpg | 'a'"),
    ('gs://b/0.jpg,cat\ngs://b/1.jpg,cat\ngs://b/2.jpg,cat\ngs://b/3.jpg,cat\ngs://b/4.jpg,cat\ngs://b/5.jpg,cat\ngs://b/6.jpg,cat\ngs://b/7.jpg,cat\ngs://b/8.jpg,cat', 'image_classification', "(assigned) | gs://b/0.jpg | 'cat'"),
    ('TRAIN,a.jpg,train\nTEST,b.jpg,bus\n,c.jpg,train', 'image_classification', "train | a.jpg | 'train'"),
    ('TEST,gs://f/3.png,,,,,,,,,\nb.jpg,x,.1,.2,,,.3,.4,,\nc.jpg', 'object_detection', 'test | gs://f/3.png | '),
    ('TRAIN,これはペンです,a', 'text_classification', "train | これはペンです | 'a'"),
    ('照片照片照片/1.jpg,a', 'image_classification', "(assigned) | 照片照片照片/1.jpg | 'a'"),
    ('"Good, and cheap"\n"Bad, and dear"', 'text_classification', '(assigned) | Good, and cheap | '),
    ('a.jpg,train,.1,.2,,,.3,.4,,\nb.jpg,train,.1,.2,,,.3,.4,,', 'object_detection', '(assigned) | a.jpg | 1 train at 0.1,0.2–0.3,0.4'),
    ('filename,set,label\n0.jpg,train,cat', 'image_classification', "train | 0.jpg | 'cat'"),
]

# name of the file, its lines (with {i} and {d} repeated for each number, or each of three), the
# proposed options, and the first row that they read; empty if nothing reads the file
STOPS = [
    ('a.csv', 'img001,cat\nimg002,dog', {'columns': 'target=2,header=no'}, 'tabular: (assigned) | img001,cat | None'),
    ('a.csv', 'image,label,class\na,b,c', {'columns': 'path=image,label=label'}, "image_classification: (assigned) | a | 'b'"),
    ('a.csv', 'Good and cheap,2\nBad and dear,11', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | Good and cheap | '2'"),
    ('a.csv', 'id,keyword,location,text,target\n1,,,Good,1', {'columns': 'text=text,label=target'}, "text_classification: (assigned) | Good | '1'"),
    ('a.csv', 'age,job,comment,target\n3,x,nice,1\n4,y,bad,0', {'columns': 'text=comment,label=target'}, "text_classification: (assigned) | nice | '1'"),
    ('a.csv', 'split,image_uri,label,comment\nTRAIN,a,cat,nice', {'columns': 'text=comment,split=split,label=label'}, "text_classification: train | nice | 'cat'"),
    ('a.csv', 'filename,text,label\n1.xml,Good and cheap,good', {'columns': 'text=text,label=label'}, "text_classification: (assigned) | Good and cheap | 'good'"),
    ('a.csv', 'TRAIN,my photos/0,cat', {'columns': 'split=1,target=3,header=no'}, 'tabular: train | TRAIN,my photos/0,cat | None'),
    ('a.csv', 'IM 0.jfif,cat', {'columns': 'target=2,header=no'}, 'tabular: (assigned) | IM 0.jfif,cat | None'),
    ('a.csv', 'img0,golden retriever', {'columns': 'text=2,label=1,header=no'}, "text_classification: (assigned) | golden retriever | 'img0'"),
    ('a.csv', 'img0,cat,dog\nimg1,cat,bird\nimg2,dog,bird', {'columns': 'target=3,header=no'}, 'tabular: (assigned) | img0,cat,dog | None'),
    ('a.csv', 'image_path,label,start,end\n0.png,a,0,1', {'columns': 'path=image_path,label=label'}, "image_classification: (assigned) | 0.png | 'a'"),
    ('a.csv', 'age,job\n31,nurse\n,clerk', {'columns': 'target=job'}, 'tabular: (assigned) | 31,nurse | None'),
    ('a.csv', 'foo,bar\na.jpg,cat\nfoo,bar\nb.jpg,dog', {'columns': 'path=foo,label=bar'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'a b\nc d\ne f\nGood and cheap,x,y', {}, ''),
    ('a.csv', 'So good,U.S.\nSo bad,U.K.\nSo so,a b c d e', {'columns': 'text=U.S.,label=So good'}, "text_classification: (assigned) | U.K. | 'So bad'"),
    ('a.csv', 'a,"Not a man."\nb c,"Not a man."\nd,"A man."\ne,"A man."', {'columns': 'text=2,label=1,header=no'}, "text_classification: (assigned) | Not a man. | 'a'"),
    ('a.csv', 'wow http://t.co/a.jpg,good\nsee http://t.co/b.jpg,bad', {'columns': 'target=2,header=no'}, 'tabular: (assigned) | wow http://t.co/a.jpg,good | None'),
    ('a.csv', 'partition,split,text,label\n0,TEST,Good,x', {'columns': 'text=text,split=split,label=label'}, "text_classification: test | Good | 'x'"),
    ('a.csv', 'age,split,y\n31,TRAIN,1\n40,TEST,0\n,UNASSIGNED,1', {'columns': 'split=split,target=y'}, 'tabular: train | 31,TRAIN,1 | None'),
    ('a.csv', '这家酒店很好。,a\nx,b', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | 这家酒店很好。 | 'a'"),
    ('a.csv', 'image,label,state\na.jpg,cat,valid\nb.jpg,dog,valid', {'columns': 'path=image,label=label'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'img/a0.jpg,train,dog\nimg/a1.jpg,train,cat\nimg/a2.jpg,train,dog\nimg/a3.jpg,train,cat\nimg/a4.jpg,test,dog', {'columns': 'path=1,split=2,label=3,header=no'}, "image_classification: train | img/a0.jpg | 'dog'"),
    ('a.csv', 'a.jpg,cat,TRAIN\nb.jpg,dog,TRAIN\nc.jpg,cat,TEST', {'columns': 'path=1,split=3,label=2,header=no'}, "image_classification: train | a.jpg | 'cat'"),
    ('a.csv', 'image_id,width,height,bbox,source\nb6ab77fd0,1024,1024,"[0.0, 222.0, 56.0, 36.0]",usask_1\nb6ab77fd1,1024,1024,"[1.0, 222.0, 56.0, 36.0]",usask_1\nb6ab77fd2,1024,1024,"[2.0, 222.0, 56.0, 36.0]",usask_1\nb6ab77fd3,1024,1024,"[3.0, 222.0, 56.0, 36.0]",usask_1', {'columns': "path=image_id,label='object',xywh=bbox"}, 'object_detection: (assigned) | b6ab77fd0 | 1 object at 0,222–56,258'),
    ('a.csv', 'id,breed\n000bec,collie', {'columns': 'target=breed'}, 'tabular: (assigned) | 000bec,collie | None'),
    ('a.csv', 'id_code,diagnosis\n000c14,2\n001639,4', {'columns': 'path=id_code,label=diagnosis'}, "image_classification: (assigned) | 000c14 | '2'"),
    ('a.csv', 'ham,Go until jurong point, crazy..\nspam,Free entry in 2 a wkly comp\nham,Ok lar. So', {}, ''),
    ('a.csv', 'cat,a.jpg\ndog,b.jpg\ncat,c.jpg', {'columns': 'path=2,label=1,header=no'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'TRAIN,ham,Go until 0 o clock\nTRAIN,spam,Go until 1 o clock\nTRAIN,ham,Go until 2 o clock\nTRAIN,spam,Go until 3 o clock', {'columns': 'text=3,split=1,label=2,header=no'}, "text_classification: train | Go until 0 o clock | 'ham'"),
    ('a.csv', '0,a.jpg,cat\n1,b.jpg,dog\n2,c.jpg,cat', {'columns': 'path=2,label=3,header=no'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'a.jpg,train,cat,.1,.2,,,.5,.6,,\nb.jpg,test,cat,.1,.2,,,.5,.6,,', {}, ''),
    ('a.csv', 'a.mp4,run,0,inf,TEST\nb.mp4,run,0,inf,TRAIN', {'columns': 'path=1,split=5,label=2,header=no'}, "video_classification: test | a.mp4 | 'run' from 0 s to the end"),
    ('a.csv', 'a.mp4,run,0,inf,TEST', {}, ''),
    ('a.csv', 'filepaths,labels,data set\na.jpg,cat,train\nb.jpg,dog,valid', {'columns': 'path=filepaths,split=data set,label=labels'}, "image_classification: train | a.jpg | 'cat'"),
    ('a.csv', '0,1\na.jpg,cat\nb.jpg,dog', {'columns': 'path=0,label=1,header=yes'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'a.jpg,cat,usask\nb.jpg,cat,usask\nc.jpg,cat,usask', {'columns': 'path=1,label=2,header=no'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'a.jpg,x,cat\nb.jpg,x,dog\nc.jpg,x,cat', {'columns': 'path=1,label=3,header=no'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', 'So good, and so very cheap for us\nSo so, so', {'columns': 'text=2,label=1,header=no'}, "text_classification: (assigned) | and so very cheap for us | 'So good'"),
    ('a.csv', 'Good as gold 0, part 0,y\nGood as gold 1, part 1,n\nGood as gold 2, part 2,y\nGood as gold 3, part 3,n\nGood as gold 4, part 4,y', {'columns': 'text=1,label=3,header=no'}, "text_classification: (assigned) | Good as gold 0 | 'y'"),
    ('a.csv', 'document,label\n1.png,bill\n2.png,letter', {'columns': 'path=document,label=label'}, "image_classification: (assigned) | 1.png | 'bill'"),
    ('a.txt', '{i}.jpg 10,20,30,40,0 50,60,70,80,1', {}, ''),
    ('a.csv', '{i}.jpg,4,5,8,10,cat\nx{i}.jpg,,,,,', {'columns': 'path=1,label=6,xmin=2,ymin=3,xmax=4,ymax=5,header=no'}, 'object_detection: (assigned) | x0.jpg | '),
    ('a.csv', '{i}.jpg,4,5,8,10,cat,40,20', {'columns': 'path=1,label=6,xmin=2,ymin=3,xmax=4,ymax=5,width=7,height=8,header=no'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 4,5–8,10'),
    ('a.csv', '{i}.jpg,0,.5,.8,1.0,cat', {'columns': 'path=1,label=6,xmin=2,ymin=3,xmax=4,ymax=5,header=no'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 0,0.5–0.8,1'),
    ('a.csv', 'Good, and cheap {i}.|praise', {'columns': 'text=2,label=1,header=no'}, "text_classification: (assigned) | and cheap 0.|praise | 'Good'"),
    ('a.data', ' 0.0063{i}  18.00   2.31  0  0.538', {}, ''),
    ('a.data', '18.{i}   8   307.0  130.0\t"ford f{i}"', {}, ''),
    ('a.csv', '5.{i},3.5,1.4,0.2,iris-{d}', {'columns': 'target=5,header=no'}, 'tabular: (assigned) | 5.0,3.5,1.4,0.2,iris-0 | None'),
    ('a.csv', '3{i}, State-gov, 7{i}, Male, <={d}K', {'columns': 'target=5,header=no'}, 'tabular: (assigned) | 30, State-gov, 70, Male, <=0K | None'),
    ('a.csv', 'animal{i}x,1,0,0,1,{d}', {'columns': 'target=6,header=no'}, 'tabular: (assigned) | animal0x,1,0,0,1,0 | None'),
    ('a.csv', '{i}.5,{i}.25', {'columns': 'target=2,header=no'}, 'tabular: (assigned) | 0.5,0.25 | None'),
    ('a.csv', 'TRAIN,5.{i},3.5,1.4,iris-{d}', {'columns': 'split=1,target=5,header=no'}, 'tabular: train | TRAIN,5.0,3.5,1.4,iris-0 | None'),
    ('a.csv', '{i}.jpg,1,0,0', {}, ''),
    ('a.csv', ',Clothing ID,Number of votes,Class Name\n{i},7{i},{d},Dress{d}', {'columns': 'target=Class Name'}, 'tabular: (assigned) | 0,70,0,Dress0 | None'),
    ('a.csv', '{d},0,255,7,0,0,{i},0,0,0', {'columns': 'target=1,header=no'}, 'tabular: (assigned) | 0,0,255,7,0,0,0,0,0,0 | None'),
    ('a.csv', 'letter{d},0,15,7,0,0,{i},0,0,{d}', {'columns': 'target=1,header=no'}, 'tabular: (assigned) | letter0,0,15,7,0,0,0,0,0,0 | None'),
    ('a.tsv', 'cats{i}#N\tare#V\t.#P', {}, ''),
    ('a.csv', 'entry_id,split_1,split_2\ng{i}x,fold{d},fold1', {}, ''),
    ('a.csv', 'word{i}\na{i},b{d},c{d}', {}, ''),
    ('a.csv', 'path,grade,mask_1\n{i}.jpg,g{d},0', {'columns': 'path=path,label=grade'}, "image_classification: (assigned) | 0.jpg | 'g0'"),
    ('a.tsv', 'index\tsentence\n{i}\tThe river is long {i}', {'columns': 'text=sentence', 'labels': 'none'}, 'text_classification: (assigned) | The river is long 0 | '),
    ('a.jsonl', '{{"0": "The river is long {i}", "1": "a{d}"}}', {'columns': 'text=0,label=1'}, "text_classification: (assigned) | The river is long 0 | 'a0'"),
    ('a.csv', 'video_id,time_start,time_end,label\nab1,0,10,run\nab2,3,13,sit\nab3,5,15,run', {}, ''),
    ('a.csv', 'age,income,city,notes\n31,2,Rome,\n32,3,Oslo,\n33,1,Rome,vip\n35,1,Oslo,\n36,1,Rome,new\n37,1,Oslo,vip\n38,2,Rome,', {'columns': 'target=city'}, 'tabular: (assigned) | 31,2,Rome, | None'),
    ('a.csv', 'tweet_id,start_pos,end_pos,entity_type\n12{i},0,6,P{d}', {}, ''),
    ('a.json', '{"0": "one long text here", "1": "another one", "2": "it goes on"}', {}, ''),
    ('a.json', '[["The river is long", "a"], ["It is cold", "b"]]', {'columns': 'text=1,label=2'}, "text_classification: (assigned) | The river is long | 'a'"),
    ('a.jsonl', '{"lr": 0.1, "loss": 0.5, "top1": 3}\n{"lr": 0.1, "loss": 0.5}\n{"lr": 0.1, "loss": 0.5}', {}, ''),
    ('a.csv', 'label,1x1,1x2,1x3,2x1,2x2,2x3\n{d},0,255,7,0,0,{i}', {'columns': 'target=label'}, 'tabular: (assigned) | 0,0,255,7,0,0,0 | None'),
    ('a.csv', 'idx,text,label,label_text\n{i},So good and cheap {i},{d},c{d}', {'columns': 'text=text,label=label_text'}, "text_classification: (assigned) | So good and cheap 0 | 'c0'"),
    ('a.txt', '{i}.jpg\t0\t4\t3\t3\t2\t2\t1\t0\t3\t0', {}, ''),
    ('a.jsonl', '{{"tokens": ["Anna", "flew{i}"], "upos": ["NNP", "VBD"], "label": "pos"}}', {}, ''),
    ('a.csv', '{i}.jpg,0.{i}1,0.25', {}, ''),
    ('a.csv', 'image,breed,split\n{i}.jpg,cat,train', {'columns': 'path=image,split=split,label=breed'}, "image_classification: train | 0.jpg | 'cat'"),
    ('a.csv', 'ask,mean\nHow do I do {i} now?,c{i}', {}, ''),
    ('a.csv', 'v1,v2,,,\nham,Go until {i} now,,,', {'columns': 'text=v2,label=v1'}, "text_classification: (assigned) | Go until 0 now | 'ham'"),
    ('a.csv', 'datei,typ\nim_{i},c{i}', {}, ''),
    ('a.csv', 'a.jpg,cat\n"Good, and cheap"', {'task': 'image_classification'}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ('a.csv', '<b>So good and cheap</b>,praise', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | <b>So good and cheap</b> | 'praise'"),
    ('a.csv', '0,cat\n1,dog\n2,owl', {}, ''),
    ('a.data', '{d},14.{i},.3{i},10{i}', {'columns': 'target=1,header=no'}, 'tabular: (assigned) | 0,14.0,.30,100 | None'),
    ('a.csv', 'fname,bbox_x1,bbox_y1,class\n{i}.jpg,1,2,c', {'columns': 'path=fname,label=class'}, "image_classification: (assigned) | 0.jpg | 'c'"),
    ('a.csv', '{i}.jpg,x,.1,.2,.5,.6', {'columns': 'path=1,label=2,xmin=3,ymin=4,xmax=5,ymax=6,header=no'}, 'object_detection: (assigned) | 0.jpg | 1 x at 0.1,0.2–0.5,0.6'),
    ('a.csv', 'x.jpg,cat,cat,.1,.5,.5\n{i}.jpg,cat,.1,.1,.5,.5', {'columns': 'path=1,label=2,xmin=3,ymin=4,xmax=5,ymax=6,header=no'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 0.1,0.1–0.5,0.5'),
    ('a.csv', 'image,class,xc,yc,w,h\n{i}.jpg,x,.5,.5,.2,.4', {'columns': 'path=image,label=class,center_xywh=xc|yc|w|h'}, 'object_detection: (assigned) | 0.jpg | 1 x at 0.4,0.3–0.6,0.7'),
    ('a.csv', 'image_id,label_name,x1,y1,w,h\n{i}.jpg,x,1,2,3,4', {'columns': 'path=image_id,label=label_name,xywh=x1|y1|w|h'}, 'object_detection: no rows'),
    ('a.csv', 'image_id,xmin,ymin,xmax,ymax\n{i}.jpg,1,2,3,4', {'columns': "path=image_id,label='object',xmin=xmin,ymin=ymin,xmax=xmax,ymax=ymax"}, 'object_detection: no rows'),
    ('a.csv', '{i},Bears are back,The sellers see green {i}.', {}, ''),
    ('images.txt', '{i} 001.Albatross/{i}.jpg', {}, ''),
    ('a.txt', '24\nBald Male\n{i}.jpg  1 -1', {}, ''),
    ('a_split1.txt', 'clip_{i}.avi {d} ', {}, ''),
    ('a.tsv', 'Quality\t#1 String\t#2 String\n{d}\tHow long is it {i}?\tHow long was it {i}?', {'columns': 'target=Quality'}, 'tabular: (assigned) | 0,How long is it 0?,How long was it 0? | None'),
    ('a.jsonl', '{{"question": "how long is it", "passage": "It is not so long {i}.", "label": {d}}}', {'columns': 'target=label'}, ''),
    ('a.csv', 'image,x1,y1,x2,y2,x3,y3\n{i}.jpg,1,2,3,4,5,6', {}, ''),
    ('a.csv', 'ImageId,EncodedPixels\n{i}.jpg,264661 17 265429 33', {}, ''),
    ('a.jsonl', '{{"file": "{i}.jpg", "boxes": [[0.1, 0.2, 0.2, 0.3], [0, 0, 0.5, 0.5]], "names": ["a", "b"]}}', {'columns': 'path=file,label=names,xywh=boxes'}, 'object_detection: (assigned) | 0.jpg | 1 a at 0.1,0.2–0.3,0.5'),
    ('a.tsv', 'product_category\tstar_rating\tverified\treview_body\nToys\t{d}\tY\tSo long and good {i}.', {'columns': 'text=review_body,label=star_rating'}, "text_classification: (assigned) | So long and good 0. | '0'"),
    ('a.csv', 'date,store,sales\n2013-01-0{d},{d},1{i}', {'columns': 'target=sales'}, 'tabular: (assigned) | 2013-01-00,0,10 | None'),
    ('a.tsv', 'index\tquestion\tsentence\tlabel\n{i}\tWhen did it begin?\tIt began in the year {i}.\te{d}', {'columns': 'target=label'}, 'tabular: (assigned) | 0,When did it begin?,It began in the year 0.,e0 | None'),
    ('a.csv', '4,{i},Mon Apr 06 22:19:45 PDT 2009,NO,user{i},Awww that is such a bummer for me {i}.', {'columns': 'text=6,label=4,header=no'}, "text_classification: (assigned) | Awww that is such a bummer for me 0. | 'NO'"),
    ('a.csv', 'text,start,end,label\nAnna flew there {i},0,4,PER', {}, ''),
    ('a.csv', 'image_id,partition,label\n{i}.jpg,{d},cat', {}, ''),
    ('a.csv', 'filename,fold,label\n{i}.jpg,{d},cat', {'columns': 'path=filename,label=label'}, "image_classification: (assigned) | 0.jpg | 'cat'"),
    ('a.csv', 'text,label,split\nGood and cheap {i},praise,{d}', {}, ''),
    ('a.csv', 'label,text,is_valid\npraise,Good and cheap {i},True', {'columns': 'text=text,label=label'}, "text_classification: (assigned) | Good and cheap 0 | 'praise'"),
    ('a.csv', 'age,job,k-fold\n{i},cook{d},{d}', {'columns': 'target=job'}, 'tabular: (assigned) | 0,cook0,0 | None'),
    ('a.csv', 'filename,set,xmin,ymin,xmax,ymax,label\n{i}.jpg,{d},.1,.1,.2,.2,cat', {}, ''),
    ('a.csv', 'lesion_id,image_id,dx,age,sex\nH_{i},{i},n{d},{i},m', {'columns': 'path=image_id,label=dx'}, "image_classification: (assigned) | 0 | 'n0'"),
    ('a.csv', 'gold_label,s1,s2,captionID\ne{d},A person ran {i}.,A man.,{i}#4', {'columns': 'target=gold_label'}, 'tabular: (assigned) | e0,A person ran 0.,A man.,0#4 | None'),
    ('a.csv', 'Image Index,Finding Labels,Patient ID,Age\n{i}.jpg,f{d},{i},{i}', {'columns': 'path=Image Index,label=Finding Labels'}, "image_classification: (assigned) | 0.jpg | 'f0'"),
    ('a.csv', 'file_name,text\n{i}.jpg,a drawing of a green animal {i}', {}, ''),
    ('a.csv', 'id,url,observed_on,place,name\n{i},{i}.jpg,2020-01-{i},x{i},y{i}', {}, ''),
    ('a.csv', 'filename,x,y,width,height,label\n{i}.jpg,.1,.2,.3,.4,cat', {'columns': 'path=filename,label=label,xywh=x|y|width|height'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 0.1,0.2–0.4,0.6'),
    ('a.csv', 'File;Tag;Upper left X;Upper left Y;Lower right X;Lower right Y\n{i}.jpg;stop;.1;.2;.3;.4', {'columns': 'path=File,label=Tag,xmin=Upper left X,ymin=Upper left Y,xmax=Lower right X,ymax=Lower right Y'}, 'object_detection: (assigned) | 0.jpg | 1 stop at 0.1,0.2–0.3,0.4'),
    ('a.tsv', 'It is cold, {i}.\tOTHER\tOTHER\nIt is late, {i}.\tRUDE\tBAD{d}', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | It is cold, 0. | 'OTHER'"),
    ('a.csv', 'image,left_eye_x,left_eye_y,right_eye_x,right_eye_y\n{i}.jpg,1,2,3,4', {}, ''),
    ('a.csv', 'image_left,image_right,label\n{i}.jpg,x{i}.jpg,{d}', {}, ''),
    ('a.csv', 'image,other_image,label\n{i}.jpg,x{i}.jpg,c{d}', {'columns': 'path=image,label=label'}, "image_classification: (assigned) | 0.jpg | 'c0'"),
    ('a.csv', '"It is {i}, or not.","Nobody knows that.",c{d}', {'columns': 'target=3,header=no'}, 'tabular: (assigned) | "It is 0, or not.","Nobody knows that.",c0 | None'),
    ('a.csv', 'ImageID,score\n{i},0.{d}', {}, ''),
    ('a.csv', 'id,part_text,kind,words\n{i},The river is long and cold {i}.,k{d},1 2 3 4', {}, ''),
    ('a.txt', 'img{i}.jpg 7{d} Boeing', {'columns': 'path=1,label=2'}, "image_classification: (assigned) | img0.jpg | '70 Boeing'"),
    ('a.csv', 'filename,size,kind\n{i}.npy,{d},k{d}', {'columns': 'target=kind'}, 'tabular: (assigned) | 0.npy,0,k0 | None'),
    ('a.csv', 'english,hindi\nThe river is long {i},This is no label {i}', {}, ''),
    ('a.jsonl', '{{"image": "{i}.jpg", "boxes": [{{"x": 5, "y": 6, "w": 2, "h": 3, "label": "cat"}}]}}', {}, ''),
    ('a.jsonl', '{{"link": "https://x.org/{i}", "headline": "A river runs through it {i}", "category": "c{d}"}}', {'columns': 'text=headline,label=category'}, "text_classification: (assigned) | A river runs through it 0 | 'c0'"),
    ('a.csv', 'tweet_id,airline_sentiment,confidence,reason,airline,name,count,text\n{i},s{d},1.0,,V,n{i},0,The river is long {i}', {'columns': 'text=text,label=airline_sentiment'}, "text_classification: (assigned) | The river is long 0 | 's0'"),
    ('a.csv', 'image,label,mask\n{i}.jpg,cat,{i}.png', {'columns': 'path=image,mask=mask'}, 'image_segmentation: (assigned) | 0.jpg | 0.png'),
    ('a.csv', 'image,label,xmin [px],ymin [px],xmax (px),ymax (px)\n{i}.jpg,cat,.1,.2,.3,.4', {'columns': 'path=image,label=label,xmin=xmin [px],ymin=ymin [px],xmax=xmax (px),ymax=ymax (px)'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 0.1,0.2–0.3,0.4'),
    ('a.csv', '{i}.jpg,.7,.5,.2,.3,cat', {'columns': 'path=1,label=6,xywh=2|3|4|5,header=no'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 0.7,0.5–0.9,0.8'),
    ('sentences_a.txt', 'It is cold here {i}\t{d}', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | It is cold here 0 | '0'"),
    ('a.csv', 'category,path,category,label,split\n,0.jpg,cat,owl,TRAIN', {'columns': 'path=path,split=split,label=3'}, ''),
    ('a.csv', 'sex,smoker,charges\ns{d},y{d},{i}.5', {}, ''),
    ('a.csv', 'a,b,kind,part\n{i},long,k{d},PreTest{d}', {}, ''),
    ('a.csv', 'age,kind,late\n3{i},kind,{d}\n4{i},full,{d}', {'columns': 'target=late'}, 'tabular: (assigned) | 30,kind,0 | None'),
    ('a.csv', ',X1,X2,Y\nID,SIZE,AGE,LATE\n1,20,30,0\n2,21,31,1\n3,22,32,0', {}, ''),
    ('a.csv', 'url,concepts[0].id,concepts[0].value\nhttps://x.org/{i}.jpg,c{d},1', {'columns': 'path=url,label=concepts[0].id'}, ''),
    ('a.csv', 'image,label,x,y,w,h\na.jpg,cat,1,2,3,4', {'columns': 'path=image,label=label,xywh=x|y|w|h'}, ''),
    ('a.csv', 'image_name,width,height,x0,y0,x1,y1\n{i}.jpg,40,20,4,5,8,10', {'columns': "path=image_name,label='object',xmin=x0,ymin=y0,xmax=x1,ymax=y1"}, 'object_detection: (assigned) | 0.jpg | 1 object at 4,5–8,10'),
    ('a.csv', 'image,x,y,label\n{i}.jpg,4,5,c{d}', {}, ''),
    ('a.csv', 'image,label,bbox\n{i}.jpg,cat,"[{i}, 2, 4{i}, 40]"', {'columns': 'path=image,label=label,xyxy=bbox'}, ''),
    ('a.csv', 'image,label,box_2d\n{i}.jpg,cat,"[{i}, 2, 4{i}, 40]"', {}, ''),
    ('a.csv', 'image,kind,kind,2\n{i}.png,c{d},x{d},z{d}', {}, ''),
    ('a.csv', 'kind,note,kind,1\nk{d},The river is long {i},x{d},y{d}', {}, ''),
    ('a.csv', 'question,answer,label,label\nWho is it {i}?,Nobody that I know {i}.,{d},k{d}', {}, ''),
    ('a.tsv', 'a\tkind\tb\tkind\n{i}\tk{d}\t{d}\tz{d}', {}, ''),
    ('a.csv', 'image,label,bbox_2d\n{i}.jpg,cat,"[{i}, 2, 4{i}, 40]"', {'columns': 'path=image,label=label,xyxy=bbox_2d'}, ''),
    ('a.jsonl', '{{"image": "{i}.jpg", "label": "cat", "bbox_2d": [{i}, 2, 4{i}, 40]}}', {'columns': 'path=image,label=label,xyxy=bbox_2d'}, ''),
    ('a.csv', 'box_2d,score,kind\n0.{i},{d},k{d}', {'columns': 'target=kind'}, 'tabular: (assigned) | 0.0,0,k0 | None'),
    ('a.jsonl', '{{"text": "Some text {i}, box_2d: [", "label": "k{d}"}}', {'columns': 'text=text,label=label'}, "text_classification: (assigned) | Some text 0, box_2d: [ | 'k0'"),
    ('a.jsonl', '{{"text": "O que e isso {i}", "tokens": ["O", "que", "e"], "label": "k{d}"}}', {'columns': 'text=text,label=label'}, "text_classification: (assigned) | O que e isso 0 | 'k0'"),
    ('a.jsonl', '{{"text": "O Romeo, it is {i}", "words": ["O", "Romeo"], "label": "k{d}"}}', {'columns': 'text=text,label=label'}, "text_classification: (assigned) | O Romeo, it is 0 | 'k0'"),
    ('a.csv', 'image,label,bbox_xywh\n{i}.jpg,cat,"[{i}, 2, 4{i}, 40]"', {'columns': 'path=image,label=label,xywh=bbox_xywh'}, ''),
    ('a.csv', 'pic,label\nhttps://h.org/p/{i},c{d}', {'columns': 'path=pic,label=label'}, ''),
    ('a.csv', 'ImageId,PolygonWKT_Pix,Class\n{i}.jpg,"POLYGON ((5 6, 8 6, 8 9, 5 6))",c{d}', {}, ''),
    ('a.csv', 'mileage,engine,label\n1{i}.5 kmpl,{i}00 CC,c{d}', {'columns': 'target=label'}, 'tabular: (assigned) | 10.5 kmpl,000 CC,c0 | None'),
    ('a.jsonl', '{{"text": "It is cold here {i}", "label": ["c{d}"], "Comments": []}}', {'columns': 'text=text,label=label'}, "text_multi_label: (assigned) | It is cold here 0 | 'c0'"),
    ('a.csv', """Sentence #,Sentence,POS,Tag\n{i},"Anna flew to Paris {i} .","['NNP', 'VBD']","['B-P', 'O']\"""", {}, ''),
    ('a.csv', 'Id,Eyes,Face,Age\na.jpg,0,0,20\nb.jpg,1,0,21\nc.jpg,0,1,22\nd.jpg,1,1,23\ne.jpg,0,0,24\nf.jpg,1,0,25\ng.jpg,0,1,26\nh.jpg,1,1,27\ni.jpg,0,0,28', {}, ''),
    ('a.csv', 'image,label,xmin,ymin,width,height\n{i}.jpg,cat,.1,.2,.3,.4', {'columns': 'path=image,label=label,xywh=xmin|ymin|width|height'}, 'object_detection: (assigned) | 0.jpg | 1 cat at 0.1,0.2–0.4,0.6'),
    ('a.csv', 'photo,tags\na0.jpg,"0,3"\na1.jpg,"2,3"\n', {'columns': 'path=photo,label=tags'}, "image_classification: (assigned) | a0.jpg | '0,3'"),
    ('a.csv', 'word,blood,target\nw0,O,x0\nw1,A,x1\n', {'columns': 'target=target'}, 'tabular: (assigned) | w0,O,x0 | None'),
    ('a.csv', 'what does RLE mean here,a\nand what is its size,b\n', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | what does RLE mean here | 'a'"),
    ('a.csv', 'rle,width,y\n1,30,a\n0,31,b\n', {'columns': 'target=y'}, 'tabular: (assigned) | 1,30,a | None'),
    ('a.csv', 'name,R,G,B,Dist\nx,3,4,5,.1\ny,4,5,6,.2\nz,4,5,7,.1\n', {'columns': 'target=Dist'}, 'tabular: (assigned) | x,3,4,5,.1 | None'),
    ('a.csv', 'Artist_-_Title 1,pop,2\nArtist_-_Title 2,folk,3\nArtist_-_Title 3,pop,2\n', {'columns': 'text=1,label=2,header=no'}, "text_classification: (assigned) | Artist_-_Title 1 | 'pop'"),
    ('a.csv', 'aa1\t1\t\tThe bell rang.\nb2\t0\t*\tHim rang.\nc3\t1\t\tIt rang.\naa1\t1\t\tWe rang.\n', {'columns': 'text=4,label=2,header=no'}, "text_classification: (assigned) | The bell rang. | '1'"),
    ('a.csv', 'photo_id,width,price,target\n1,30,2.5,a\n2,31,2.5,b\n', {'columns': 'target=target'}, 'tabular: (assigned) | 1,30,2.5,a | None'),
    ('a.csv', 'start_time,end_time,time_of_day,delay,outcome\n1,2,3,4,late\n1,2,3,5,early\n', {'columns': 'target=outcome'}, 'tabular: (assigned) | 1,2,3,4,late | None'),
    ('p.json', '[{"data": {"text": "Anna flew."}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 4, "labels": ["PER"]}}]}]}]', {}, ''),
    ('a.txt', 'apple_pie/1000\napple_pie/1001\nbaklava/1002', {}, ''),
    pytest.param('a.csv', f"id,{MANY},label\n{TURNS * 13}", {'columns': 'target=label'}, '', id="many columns"),
    ('a.csv', ',age,job\n0,31,nurse\n1,40,clerk', {'columns': 'target=job'}, 'tabular: (assigned) | 0,31,nurse | None'),
    ('a.csv', 'age,,job\n31,x y,nurse b\n40,y z,clerk c', {'columns': 'text=job,label=age'}, "text_classification: (assigned) | nurse b | '31'"),
    ('a.csv', 'TRAIN,gs://b/a.jsonl\nTEST,b.jsonl', {}, ''),
    ('a.csv', 'my cat.jpg 0\ndog.jpg 1\n', {}, ''),
    ('a.csv', 'images/1.jpg  0\nimages/22.jpg 1\n', {'columns': 'path=1,label=2'}, "image_classification: (assigned) | images/1.jpg | '0'"),
    ('a.csv', '1 a/1.jpg\n2 a/2.jpg\n', {}, ''),
    ('a.csv', ' 0.00632  18.00  2.31\n 0.02731   0.00  7.07\n 0.1 0 7\n', {}, ''),
    ('a.csv', '18.0 8 307.0 "ford"\n17.0 8 302.0 "amc"\n15.0 8 3 "ford"\n', {}, ''),
]
# the lines of a file of texts or images whose task is given, the task, and the proposed options
GIVEN = [
    ('word\ngood\nbad', 'text_classification', {'columns': 'text=word', 'labels': 'none'}),
    ('word,kind\ngood,p\nbad,n', 'text_classification', {'columns': 'text=word,label=kind'}),
    ('word,kind\ngood,p\nbad,n', 'image_classification', {}),
    ('1,The river is long\n2,It is cold here', 'text_classification', {'columns': 'text=2,label=1,header=no'}),
    ('image,Id\n1.jpg,a\n2.jpg,b\n3.jpg,a', 'image_classification', {'columns': 'path=image,label=Id'}),
    ('joy,"It is cold, and late"\nfear,Nobody knows that\njoy,Who is it\nfear,So it goes on', 'text_multi_label', {'columns': 'text=2,label=1,header=no'}),
    ('{{"headline": "It is cold here {i}", "is_odd": {d}}}', 'text_classification', {'columns': 'text=headline,label=is_odd'}),
    ('img/a0.jpg,train,dog\nimg/a1.jpg,train,cat\nimg/a2.jpg,test,dog', 'image_multi_label', {'columns': 'path=1,split=2,label=3,header=no'}),
]
KIND = {"columns": "text=2,label=1,header=no"}
# files of rows in a folder without images, the proposed options, and the proposed source
FOLDERS = [
    ({"in/train.tsv": "a\tIt is cold.\nb\tGood, dear.\n" * 9, "in/dev.tsv": "a\tIt is late.\n"}, KIND, "in/*.tsv"),
    ({"a-train.txt": "x;It is cold.;a\ny;It is late.;b\n" * 9, "a-test.txt": "1;It is warm.\n"}, KIND, "a-train.txt"),
    ({"a.data": "5.1,3,x\n4.9,3.1,y\n5.0,3.2,x\n", "readme.txt": "No, x\n", "mapping.txt": "0, x\n"}, {"columns": "target=3,header=no"}, "a.data"),
    ({"train.txt": "__label__a It is cold.\n", "dev.txt": "__label__b It is late.\n"}, {}, ""),
    ({"mapping.csv": "text,label\nIt is cold.,a\nIt is late.,b\n", "notes.md": "x\n"}, {}, "mapping.csv"),
    ({"a_submission.csv": "id,y\n1,0\n", "test.csv": "id,x\n1,5\n", "train.csv": "id,x,y\n1,5,a\n2,7,b\n3,9,a\n"}, {"columns": "target=y"}, "train.csv"),
    ({"a/1": b"\x89PNG\r\n\x1a\n\0", "b/2": b"\x89PNG\r\n\x1a\n\0"}, {}, ""),
    ({"a-labels.json": '{"a": "0"}\n', "a-train.json": '[{"id": "1", "label": "a"}]'}, {}, ""),
    ({"train.csv": "image,label\n1.jpg,0\n2.jpg,1\n", "test.csv": "image,label\n3.jpg,cat\n"}, {"labels": "text"}, "*.csv"),
    ({"train.csv": "image,label\n1.jpg,0\n2.jpg,1\n", "test.csv": "image,label,fog\n3.jpg,1,n\n"}, {"columns": "path=image,label=label"}, "*.csv"),
    ({"Train/0/aa1.png": b"", "Test/bb2.png": b"", "Meta/cc3.png": b"", "Train.csv": "Path,ClassId\nTrain/0/aa1.png,4\n"}, {"columns": "path=Path,label=ClassId"}, "Train.csv"),
    ({**{f"train/{n}/{n}c0ffee7.png": b"" for n in range(6)}, "a.csv": "img,kind\n" + "".join(f"train/{n}/{n}c0ffee7.png,k{n % 3}\n" for n in range(6))}, {"columns": "path=img,label=kind"}, "a.csv"),
    ({**{f"{at}/{n}.txt": "It is late." for at in ("cat", "dog") for n in "12"}, "meta.tsv": "a\tb\n1\t2\n"}, {"layout": "{label}/{name}.txt"}, ""),
    ({"a_tags.txt": "B-P O\nB-P I-P\n", "b_words.txt": "Ben left\nAnna Day\n"}, {}, ""),
    ({"a.jsonl": '{"t": "It is late, @john"}\n' * 2}, {"columns": "text=t", "labels": "none"}, "a.jsonl"),
    ({"a.jsonl": '{"foo": "Good and cheap", "baz": "praise"}\n', "b.jsonl": ""}, {"columns": "text=foo,label=baz"}, "a.jsonl"),
    ({"train/a.jsonl": '{"s": "It is cold."}\n', "test/a.jsonl": '{"s": "It is late."}\n'}, {"columns": "text=s", "labels": "none"}, "*/*.jsonl"),
]
# fmt: on


def definitions():
    """Yield the definitions on the page of formats, and the lines of their examples."""
    page = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    table = page.split("| a source | is read if |")[1].split("\n\n")[0]
    for row in table.split("\n")[2:]:
        name, _, example = map(str.strip, row.strip("|").split("|"))
        if example:
            yield name.partition(" (")[0], "\n".join(it.strip("`") for it in example.split("<br>"))


TASKS = {
    "AutoML's rows": "image_classification",
    "named columns": "image_classification",
    "one-hot columns": "image_multi_label",
    "AutoML's objects": "image_classification",
}


def test_each_definition_of_the_page_reads_its_example(tmp_path):
    """No definition of rows is without one."""
    found = {}
    for name, lines in definitions():
        path = tmp_path / ("a.jsonl" if lines.startswith("{") else "a.csv")
        path.write_text(lines)
        found[name], _ = first_row(path)
    assert found == TASKS


def written(folder, name, lines):
    header, _, line = lines.partition("\n") if "\n" in lines else ("", "", lines)
    if "{i}" in header:
        header, line = "", lines
    repeated = [line.format(i=n, d=n % 3) for n in range(ROWS)] if "{i}" in line else [line]
    path = folder / name
    path.write_text("\n".join([*filter(None, [header]), *repeated]) + "\n", encoding="utf-8")
    return path


def first_row(path, **options):
    given = make_options(options)
    decided = detect([ImportFile(str(path))], given).options
    row = next(iter(preview_files([ImportFile(str(path))], decided, Samples()).rows), None)
    return decided.task, row and f"{row.split} | {row.subject} | {row.annotation}"


@pytest.mark.parametrize(("lines", "task", "row"), READ)
def test_what_fits_a_definition_is_read(lines, task, row, tmp_path):
    """Its task is decided by its columns or lines, and a given task reads the same row."""
    path = tmp_path / "a.csv"
    path.write_text(lines, encoding="utf-8")
    expected = task, None if row == "no rows" else row
    assert first_row(path) == first_row(path, task=task) == expected


@pytest.mark.parametrize(("name", "lines", "options", "row"), STOPS)
def test_everything_else_stops_with_options_that_read_it(name, lines, options, row, tmp_path):
    """No guess becomes data, and no advice leads back to the same stop."""
    path = written(tmp_path, name, lines)
    refused = refusal(detect, [ImportFile(str(path))], make_options({}))
    assert refused.options == options
    assert str(path) in refused.reason
    if row:
        task, found = first_row(path, **options)
        assert f"{task}: {found or 'no rows'}" == row


@pytest.mark.parametrize(("files", "options", "source"), FOLDERS)
def test_files_of_rows_are_proposed_where_no_image_is(files, options, source, tmp_path):
    """A folder of splits is read whole if they are alike, else the file of train."""
    root = write_files(tmp_path, files)
    refused = refusal(Reading, f"{root}")
    assert (refused.options, refused.source) == (options, source and f"{root}/{source}")
    assert not source or not Reading(refused.source, **options).rejects


@pytest.mark.parametrize(("lines", "task", "options"), GIVEN)
def test_no_table_is_proposed_to_those_who_name_another_task(lines, task, options, tmp_path):
    """The proposal for a first row keeps to the task that is named."""
    path = written(tmp_path, "a.jsonl" if lines[0] == "{" else "a.csv", lines)
    assert refusal(first_row, path, task=task).options == options


def test_a_row_of_many_fields_costs_its_own_length_alone(tmp_path):
    """Advice about thousands of rows does not look for each field of the widest one in all."""
    path = tmp_path / "a.csv"
    rows = "TEST,bad,worse\n" * 4_000
    for lines in (f"{rows}{',' * 100_000}x\n{rows}", f"5{',1' * 784}\n" * 4):
        path.write_text(lines)
        with pytest.raises(NotUnderstoodError):  # not the error of the allowance of time
            open_source(str(path), make_options({}))
